// NNAPI's C API on Linux: it leaves the model that a program builds as a record, and has nnx-convert run it.
//
// Compiling a model writes a folder: $NNX_RECORD_DIR/0, /1 and so on, one for each compilation of the process
// [nnx-record]. In it are `model.json`, with values in `model.bin`, and what $NNX_RECORD_RUN makes of them, the model
// as `model.nnx`. A run writes its inputs there (`run.json`, `in0.bin` and so on), calls $NNX_RECORD_RUN with the
// folder [nnx-convert record-run], and reads the outputs (`outputs.txt`, `out0.bin` and so on). $NNX_RECORD_LEVEL is
// the feature level that a program which asks is told [1000008].
#include "recorder.hpp"

#include <sys/stat.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <locale>
#include <sstream>

namespace recorder {

namespace {

/// Values are written from here on, so that whoever reads the record may look at them in place.
constexpr size_t kAlign = 64;

/// Text for a file: numbers as C has them, whatever the program's locale, floats so that they read back the same.
std::ostringstream plain() {
  std::ostringstream out;
  out.imbue(std::locale::classic());
  out.precision(9);
  return out;
}

template <typename T>
std::string list(const std::vector<T>& items) {
  std::ostringstream out = plain();
  out << '[';
  for (size_t i = 0; i < items.size(); ++i) out << (i > 0 ? "," : "") << items[i];
  out << ']';
  return out.str();
}

/// The models that one holds, each after those that it holds itself; then the model.
void subgraphs_first(const ANeuralNetworksModel* model, std::vector<const ANeuralNetworksModel*>& found) {
  for (const ANeuralNetworksModel* known : found) {
    if (known == model) return;
  }
  for (const Operand& operand : model->operands) {
    if (operand.model != nullptr) subgraphs_first(operand.model, found);
  }
  found.push_back(model);
}

/// Writes models as `model.json` and `model.bin`.
class Record {
 public:
  explicit Record(const std::string& folder)
      : text_(folder + "/model.json"), data_(folder + "/model.bin", std::ios::binary) {
    text_.imbue(std::locale::classic());
    text_.precision(9);
  }

  bool write(const ANeuralNetworksModel* model) {
    std::vector<const ANeuralNetworksModel*> order;
    subgraphs_first(model, order);
    text_ << "{\"format\":\"nnx-record\",\"version\":1,\"models\":[";
    for (size_t n = 0; n < order.size(); ++n) {
      text_ << (n > 0 ? ",\n" : "\n") << "{\"relaxed\":" << (order[n]->relaxed ? "true" : "false") << ",\"operands\":[";
      const char* between = "\n";
      for (const Operand& operand : order[n]->operands) {
        text_ << between;
        write(operand, order);
        between = ",\n";
      }
      text_ << "],\"operations\":[";
      between = "\n";
      for (const Operation& o : order[n]->operations) {
        text_ << between << "{\"code\":" << o.code << ",\"ex\":" << (o.ex ? "true" : "false")
              << ",\"inputs\":" << list(o.inputs) << ",\"outputs\":" << list(o.outputs) << "}";
        between = ",\n";
      }
      text_ << "],\"inputs\":" << list(order[n]->inputs) << ",\"outputs\":" << list(order[n]->outputs) << "}";
    }
    text_ << "]}\n";
    text_.flush();
    data_.flush();
    return text_.good() && data_.good();
  }

 private:
  void write(const Operand& o, const std::vector<const ANeuralNetworksModel*>& order) {
    text_ << "{\"type\":" << o.type << ",\"dims\":" << list(o.dims) << ",\"scale\":" << o.scale
          << ",\"zero\":" << o.zero;
    if (!o.scales.empty()) text_ << ",\"axis\":" << o.axis << ",\"scales\":" << list(o.scales);
    if (o.value == Value::left_out) text_ << ",\"none\":true";
    if (o.value == Value::bytes) value(o.bytes.data(), o.bytes.size());
    if (o.value == Value::memory) value(o.mapped, o.length);
    for (size_t n = 0; o.value == Value::model && n < order.size(); ++n) {
      if (order[n] == o.model) text_ << ",\"model\":" << n;
    }
    text_ << "}";
  }

  void value(const char* bytes, size_t length) {
    static const char zeros[kAlign] = {};
    const size_t gap = (kAlign - at_ % kAlign) % kAlign;
    data_.write(zeros, static_cast<std::streamsize>(gap));
    at_ += gap;
    text_ << ",\"at\":" << at_ << ",\"bytes\":" << length;
    data_.write(bytes, static_cast<std::streamsize>(length));
    at_ += length;
  }

  std::ofstream text_, data_;
  size_t at_ = 0;
};

/// The folder of the next compilation, made; empty where it cannot be.
std::string next_folder() {
  static std::atomic<int> count{0};
  const std::string all = setting("NNX_RECORD_DIR", "nnx-record");
  mkdir(all.c_str(), 0777);
  const std::string folder = all + "/" + std::to_string(count++);
  mkdir(folder.c_str(), 0777);
  struct stat found {};
  return stat(folder.c_str(), &found) == 0 && S_ISDIR(found.st_mode) ? folder : "";
}

/// Have the record in a folder read, and run where there are inputs; whether that went well.
bool handed_over(const std::string& folder) {
  std::string quoted;
  for (const char c : folder) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return std::system((setting("NNX_RECORD_RUN", "nnx-convert record-run") + " '" + quoted + "'").c_str()) == 0;
}

bool written(const std::string& path, const void* bytes, size_t length) {
  std::ofstream file(path, std::ios::binary);
  if (length > 0) file.write(static_cast<const char*>(bytes), static_cast<std::streamsize>(length));
  file.close();
  return file.good();
}

bool write_inputs(const ANeuralNetworksExecution& execution, const std::string& folder) {
  std::ostringstream text = plain();
  text << "{\"inputs\":[";
  for (size_t i = 0; i < execution.inputs.size(); ++i) {
    const Given& given = execution.inputs[i];
    const bool none = given.buffer == nullptr && given.length == 0;
    text << (i > 0 ? "," : "") << "{\"none\":" << (none ? "true" : "false");
    if (given.typed) text << ",\"dims\":" << list(given.dims);
    text << "}";
    if (!written(folder + "/in" + std::to_string(i) + ".bin", given.buffer, given.length)) return false;
  }
  text << "]}\n";
  return written(folder + "/run.json", text.str().data(), text.str().size());
}

int read_outputs(ANeuralNetworksExecution& execution, const std::string& folder) {
  std::ifstream sizes(folder + "/outputs.txt");
  sizes.imbue(std::locale::classic());
  int result = ANEURALNETWORKS_NO_ERROR;
  for (size_t i = 0; i < execution.outputs.size(); ++i) {
    Taken& taken = execution.outputs[i];
    size_t rank = 0;
    if (!(sizes >> rank) || rank > 64) return fault(ANEURALNETWORKS_OP_FAILED, "outputs.txt says nothing of an output");
    taken.dims.assign(rank, 0);
    for (uint32_t& n : taken.dims) sizes >> n;
    std::ifstream file(folder + "/out" + std::to_string(i) + ".bin", std::ios::binary);
    const std::vector<char> bytes{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
    if (bytes.size() > taken.length) result = ANEURALNETWORKS_OUTPUT_INSUFFICIENT_SIZE;
    else if (!bytes.empty()) std::memcpy(taken.buffer, bytes.data(), bytes.size());
  }
  return result;
}

}  // namespace

int fault(int result, const std::string& text) {
  std::fprintf(stderr, "nnx recorder: %s\n", text.c_str());
  return result;
}

std::string setting(const char* name, const char* otherwise) {
  const char* found = std::getenv(name);
  return found != nullptr && *found != '\0' ? found : otherwise;
}

int compile(ANeuralNetworksCompilation& compilation) {
  const std::string folder = next_folder();
  if (folder.empty()) return fault(ANEURALNETWORKS_OP_FAILED, "there is no place for a record: see NNX_RECORD_DIR");
  std::remove((folder + "/run.json").c_str());
  if (!Record(folder).write(compilation.model)) return fault(ANEURALNETWORKS_OP_FAILED, folder + " takes no record");
  if (!handed_over(folder)) return fault(ANEURALNETWORKS_BAD_DATA, "the model in " + folder + " is not in order");
  compilation.folder = folder;
  return ANEURALNETWORKS_NO_ERROR;
}

int compute(ANeuralNetworksExecution* execution) {
  if (execution == nullptr) return ANEURALNETWORKS_UNEXPECTED_NULL;
  for (const Given& given : execution->inputs) {
    if (!given.there) return fault(ANEURALNETWORKS_BAD_DATA, "an input is not set");
  }
  const std::string& folder = execution->compilation->folder;
  if (!write_inputs(*execution, folder)) return fault(ANEURALNETWORKS_OP_FAILED, folder + " takes no inputs");
  const bool good = handed_over(folder);
  std::remove((folder + "/run.json").c_str());
  return good ? read_outputs(*execution, folder) : fault(ANEURALNETWORKS_OP_FAILED, "the run of " + folder + " failed");
}

}  // namespace recorder
