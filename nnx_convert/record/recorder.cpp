// NNAPI's C API on Linux: it leaves the model that a program builds as a record, and has nnx-convert run it.
//
// Compiling a model writes a folder: $NNX_RECORD_DIR/0, /1 and so on, one for each compilation of the process
// [nnx-record]. In it are `model.json`, with values in `model.bin`, and what $NNX_RECORD_RUN makes of them, the model
// as `model.nnx`. A run writes its inputs there (`run.json`, `in0.bin` and so on), calls $NNX_RECORD_RUN with the
// folder [nnx-convert record-run], and reads the outputs (`outputs.txt`, `out0.bin` and so on). $NNX_RECORD_LEVEL is
// the feature level that a program which asks is told [1000008].
//
// NNX_LEVEL, 27 to 31, is the feature level that it has the calls of [31].
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <locale>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "NeuralNetworks.h"

namespace {

/// Values are written from here on, so that whoever reads the record may look at them in place.
constexpr size_t kAlign = 64;

enum class Value { none_yet, left_out, bytes, memory, model };

struct Operand {
  int32_t type;
  std::vector<uint32_t> dims;
  float scale;
  int32_t zero;
  Value value = Value::none_yet;
  std::vector<char> bytes;
  const char* mapped = nullptr;
  size_t length = 0;
  const ANeuralNetworksModel* model = nullptr;
  uint32_t axis = 0;
  std::vector<float> scales;
};

struct Operation {
  int32_t code;
  bool ex;
  std::vector<uint32_t> inputs, outputs;
};

struct Given {
  bool there = false, typed = false;
  std::vector<uint32_t> dims;
  const void* buffer = nullptr;
  size_t length = 0;
};

struct Taken {
  void* buffer = nullptr;
  size_t length = 0;
  std::vector<uint32_t> dims;
};

/// A fault, on stderr, as an NNAPI result.
int fault(int result, const std::string& text) {
  std::fprintf(stderr, "nnx recorder: %s\n", text.c_str());
  return result;
}

template <typename T>
std::vector<T> listed(const T* items, uint32_t count) {
  return count == 0 ? std::vector<T>() : std::vector<T>(items, items + count);
}

}  // namespace

struct ANeuralNetworksMemory {
  char* data;
  size_t size;
};

struct ANeuralNetworksModel {
  std::vector<Operand> operands;
  std::vector<Operation> operations;
  std::vector<uint32_t> inputs, outputs;
  bool relaxed = false, finished = false;
};

struct ANeuralNetworksCompilation {
  const ANeuralNetworksModel* model;
  std::string folder;
};

struct ANeuralNetworksExecution {
  const ANeuralNetworksCompilation* compilation;
  std::vector<Given> inputs;
  std::vector<Taken> outputs;
};

struct ANeuralNetworksEvent {
  int result;
};

struct ANeuralNetworksDevice {};

struct ANeuralNetworksBurst {};

namespace {

/// The operand of an index, of a model that may still be changed; else null, and `result` says why.
Operand* open_operand(ANeuralNetworksModel* model, int32_t index, int& result) {
  result = model == nullptr ? ANEURALNETWORKS_UNEXPECTED_NULL
           : model->finished ? ANEURALNETWORKS_BAD_STATE
           : index < 0 || static_cast<size_t>(index) >= model->operands.size() ? ANEURALNETWORKS_BAD_DATA
                                                                               : ANEURALNETWORKS_NO_ERROR;
  return result == ANEURALNETWORKS_NO_ERROR ? &model->operands[static_cast<size_t>(index)] : nullptr;
}

bool all_there(const ANeuralNetworksModel& model, const std::vector<uint32_t>& operands) {
  for (const uint32_t i : operands) {
    if (i >= model.operands.size()) return false;
  }
  return true;
}

int add(ANeuralNetworksModel* model, Operation operation) {
  if (model == nullptr) return ANEURALNETWORKS_UNEXPECTED_NULL;
  if (model->finished) return ANEURALNETWORKS_BAD_STATE;
  if (!all_there(*model, operation.inputs) || !all_there(*model, operation.outputs)) return ANEURALNETWORKS_BAD_DATA;
  model->operations.push_back(std::move(operation));
  return ANEURALNETWORKS_NO_ERROR;
}

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

std::string setting(const char* name, const char* otherwise) {
  const char* found = std::getenv(name);
  return found != nullptr && *found != '\0' ? found : otherwise;
}

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

int set_input(ANeuralNetworksExecution* execution, int32_t index, const ANeuralNetworksOperandType* type,
              const void* buffer, size_t length) {
  if (execution == nullptr || (buffer == nullptr && length > 0)) return ANEURALNETWORKS_UNEXPECTED_NULL;
  if (index < 0 || static_cast<size_t>(index) >= execution->inputs.size()) return ANEURALNETWORKS_BAD_DATA;
  Given given;
  given.there = true;
  given.buffer = buffer;
  given.length = length;
  if (type != nullptr && type->dimensionCount > 0) {
    given.typed = true;
    given.dims = listed(type->dimensions, type->dimensionCount);
  }
  execution->inputs[static_cast<size_t>(index)] = given;
  return ANEURALNETWORKS_NO_ERROR;
}

int set_output(ANeuralNetworksExecution* execution, int32_t index, void* buffer, size_t length) {
  if (execution == nullptr || (buffer == nullptr && length > 0)) return ANEURALNETWORKS_UNEXPECTED_NULL;
  if (index < 0 || static_cast<size_t>(index) >= execution->outputs.size()) return ANEURALNETWORKS_BAD_DATA;
  execution->outputs[static_cast<size_t>(index)] = {buffer, length, {}};
  return ANEURALNETWORKS_NO_ERROR;
}

bool inside(const ANeuralNetworksMemory* memory, size_t offset, size_t length) {
  return offset <= memory->size && length <= memory->size - offset;
}

}  // namespace

// Memory

int ANeuralNetworksMemory_createFromFd(size_t size, int protect, int fd, size_t offset,
                                       ANeuralNetworksMemory** memory) {
  if (memory == nullptr) return ANEURALNETWORKS_UNEXPECTED_NULL;
  void* data = mmap(nullptr, size, protect, MAP_SHARED, fd, static_cast<off_t>(offset));
  if (data == MAP_FAILED) return ANEURALNETWORKS_UNMAPPABLE;
  *memory = new ANeuralNetworksMemory{static_cast<char*>(data), size};
  return ANEURALNETWORKS_NO_ERROR;
}

void ANeuralNetworksMemory_free(ANeuralNetworksMemory* memory) {
  if (memory == nullptr) return;
  munmap(memory->data, memory->size);
  delete memory;
}

// Models

int ANeuralNetworksModel_create(ANeuralNetworksModel** model) {
  if (model == nullptr) return ANEURALNETWORKS_UNEXPECTED_NULL;
  *model = new ANeuralNetworksModel;
  return ANEURALNETWORKS_NO_ERROR;
}

void ANeuralNetworksModel_free(ANeuralNetworksModel* model) { delete model; }

int ANeuralNetworksModel_finish(ANeuralNetworksModel* model) {
  if (model == nullptr) return ANEURALNETWORKS_UNEXPECTED_NULL;
  if (model->finished) return ANEURALNETWORKS_BAD_STATE;
  if (model->outputs.empty()) return fault(ANEURALNETWORKS_BAD_DATA, "the model has no outputs");
  model->finished = true;
  return ANEURALNETWORKS_NO_ERROR;
}

int ANeuralNetworksModel_addOperand(ANeuralNetworksModel* model, const ANeuralNetworksOperandType* type) {
  if (model == nullptr || type == nullptr || (type->dimensionCount > 0 && type->dimensions == nullptr)) {
    return ANEURALNETWORKS_UNEXPECTED_NULL;
  }
  if (model->finished) return ANEURALNETWORKS_BAD_STATE;
  if (!std::isfinite(type->scale)) return ANEURALNETWORKS_BAD_DATA;
  Operand operand;
  operand.type = type->type;
  operand.dims = listed(type->dimensions, type->dimensionCount);
  operand.scale = type->scale;
  operand.zero = type->zeroPoint;
  model->operands.push_back(std::move(operand));
  return ANEURALNETWORKS_NO_ERROR;
}

int ANeuralNetworksModel_setOperandValue(ANeuralNetworksModel* model, int32_t index, const void* buffer,
                                         size_t length) {
  int result = 0;
  Operand* operand = open_operand(model, index, result);
  if (operand == nullptr) return result;
  if (buffer == nullptr && length > 0) return ANEURALNETWORKS_UNEXPECTED_NULL;
  const char* bytes = static_cast<const char*>(buffer);
  operand->value = buffer == nullptr ? Value::left_out : Value::bytes;
  operand->bytes.assign(bytes, bytes + length);
  return ANEURALNETWORKS_NO_ERROR;
}

int ANeuralNetworksModel_setOperandValueFromMemory(ANeuralNetworksModel* model, int32_t index,
                                                   const ANeuralNetworksMemory* memory, size_t offset,
                                                   size_t length) {
  int result = 0;
  Operand* operand = open_operand(model, index, result);
  if (operand == nullptr) return result;
  if (memory == nullptr) return ANEURALNETWORKS_UNEXPECTED_NULL;
  if (!inside(memory, offset, length)) return ANEURALNETWORKS_BAD_DATA;
  operand->value = Value::memory;
  operand->mapped = memory->data + offset;
  operand->length = length;
  return ANEURALNETWORKS_NO_ERROR;
}

int ANeuralNetworksModel_addOperation(ANeuralNetworksModel* model, ANeuralNetworksOperationType type,
                                      uint32_t inputCount, const uint32_t* inputs, uint32_t outputCount,
                                      const uint32_t* outputs) {
  return add(model, {type, false, listed(inputs, inputCount), listed(outputs, outputCount)});
}

int ANeuralNetworksModel_addOperationEx(ANeuralNetworksModel* model, ANeuralNetworksOperationTypeEx type,
                                        uint32_t inputCount, const uint32_t* inputs, uint32_t outputCount,
                                        const uint32_t* outputs) {
  return add(model, {type, true, listed(inputs, inputCount), listed(outputs, outputCount)});
}

int ANeuralNetworksModel_identifyInputsAndOutputs(ANeuralNetworksModel* model, uint32_t inputCount,
                                                  const uint32_t* inputs, uint32_t outputCount,
                                                  const uint32_t* outputs) {
  if (model == nullptr) return ANEURALNETWORKS_UNEXPECTED_NULL;
  if (model->finished) return ANEURALNETWORKS_BAD_STATE;
  model->inputs = listed(inputs, inputCount);
  model->outputs = listed(outputs, outputCount);
  const bool there = all_there(*model, model->inputs) && all_there(*model, model->outputs);
  return there ? ANEURALNETWORKS_NO_ERROR : ANEURALNETWORKS_BAD_DATA;
}

#if NNX_LEVEL >= 28
int ANeuralNetworksModel_relaxComputationFloat32toFloat16(ANeuralNetworksModel* model, bool allow) {
  if (model == nullptr) return ANEURALNETWORKS_UNEXPECTED_NULL;
  if (model->finished) return ANEURALNETWORKS_BAD_STATE;
  model->relaxed = allow;
  return ANEURALNETWORKS_NO_ERROR;
}
#endif

#if NNX_LEVEL >= 29
int ANeuralNetworksModel_setOperandSymmPerChannelQuantParams(
    ANeuralNetworksModel* model, int32_t index, const ANeuralNetworksSymmPerChannelQuantParams* channelQuant) {
  int result = 0;
  Operand* operand = open_operand(model, index, result);
  if (operand == nullptr) return result;
  if (channelQuant == nullptr || channelQuant->scales == nullptr) return ANEURALNETWORKS_UNEXPECTED_NULL;
  operand->axis = channelQuant->channelDim;
  operand->scales = listed(channelQuant->scales, channelQuant->scaleCount);
  for (const float scale : operand->scales) {
    if (!std::isfinite(scale)) return ANEURALNETWORKS_BAD_DATA;
  }
  return ANEURALNETWORKS_NO_ERROR;
}

int ANeuralNetworksModel_getSupportedOperationsForDevices(const ANeuralNetworksModel* model,
                                                          const ANeuralNetworksDevice* const*, uint32_t,
                                                          bool* supportedOps) {
  if (model == nullptr || supportedOps == nullptr) return ANEURALNETWORKS_UNEXPECTED_NULL;
  for (size_t i = 0; i < model->operations.size(); ++i) supportedOps[i] = true;
  return ANEURALNETWORKS_NO_ERROR;
}
#endif

#if NNX_LEVEL >= 30
int ANeuralNetworksModel_setOperandValueFromModel(ANeuralNetworksModel* model, int32_t index,
                                                  const ANeuralNetworksModel* value) {
  int result = 0;
  Operand* operand = open_operand(model, index, result);
  if (operand == nullptr) return result;
  if (value == nullptr) return ANEURALNETWORKS_UNEXPECTED_NULL;
  if (!value->finished) return ANEURALNETWORKS_BAD_STATE;
  operand->value = Value::model;
  operand->model = value;
  return ANEURALNETWORKS_NO_ERROR;
}
#endif

// Compilations

int ANeuralNetworksCompilation_create(ANeuralNetworksModel* model, ANeuralNetworksCompilation** compilation) {
  if (model == nullptr || compilation == nullptr) return ANEURALNETWORKS_UNEXPECTED_NULL;
  if (!model->finished) return ANEURALNETWORKS_BAD_STATE;
  *compilation = new ANeuralNetworksCompilation{model, ""};
  return ANEURALNETWORKS_NO_ERROR;
}

void ANeuralNetworksCompilation_free(ANeuralNetworksCompilation* compilation) { delete compilation; }

int ANeuralNetworksCompilation_setPreference(ANeuralNetworksCompilation* compilation, int32_t) {
  return compilation == nullptr ? ANEURALNETWORKS_UNEXPECTED_NULL : ANEURALNETWORKS_NO_ERROR;
}

int ANeuralNetworksCompilation_finish(ANeuralNetworksCompilation* compilation) {
  if (compilation == nullptr) return ANEURALNETWORKS_UNEXPECTED_NULL;
  if (!compilation->folder.empty()) return ANEURALNETWORKS_BAD_STATE;
  const std::string folder = next_folder();
  if (folder.empty()) return fault(ANEURALNETWORKS_OP_FAILED, "there is no place for a record: see NNX_RECORD_DIR");
  std::remove((folder + "/run.json").c_str());
  if (!Record(folder).write(compilation->model)) return fault(ANEURALNETWORKS_OP_FAILED, folder + " takes no record");
  if (!handed_over(folder)) return fault(ANEURALNETWORKS_BAD_DATA, "the model in " + folder + " is not in order");
  compilation->folder = folder;
  return ANEURALNETWORKS_NO_ERROR;
}

// Runs

int ANeuralNetworksExecution_create(ANeuralNetworksCompilation* compilation, ANeuralNetworksExecution** execution) {
  if (compilation == nullptr || execution == nullptr) return ANEURALNETWORKS_UNEXPECTED_NULL;
  if (compilation->folder.empty()) return ANEURALNETWORKS_BAD_STATE;
  const ANeuralNetworksModel& model = *compilation->model;
  *execution = new ANeuralNetworksExecution{compilation, std::vector<Given>(model.inputs.size()),
                                            std::vector<Taken>(model.outputs.size())};
  return ANEURALNETWORKS_NO_ERROR;
}

void ANeuralNetworksExecution_free(ANeuralNetworksExecution* execution) { delete execution; }

int ANeuralNetworksExecution_setInput(ANeuralNetworksExecution* execution, int32_t index,
                                      const ANeuralNetworksOperandType* type, const void* buffer, size_t length) {
  return set_input(execution, index, type, buffer, length);
}

int ANeuralNetworksExecution_setInputFromMemory(ANeuralNetworksExecution* execution, int32_t index,
                                                const ANeuralNetworksOperandType* type,
                                                const ANeuralNetworksMemory* memory, size_t offset, size_t length) {
  if (memory == nullptr) return ANEURALNETWORKS_UNEXPECTED_NULL;
  if (!inside(memory, offset, length)) return ANEURALNETWORKS_BAD_DATA;
  return set_input(execution, index, type, memory->data + offset, length);
}

int ANeuralNetworksExecution_setOutput(ANeuralNetworksExecution* execution, int32_t index,
                                       const ANeuralNetworksOperandType*, void* buffer, size_t length) {
  return set_output(execution, index, buffer, length);
}

int ANeuralNetworksExecution_setOutputFromMemory(ANeuralNetworksExecution* execution, int32_t index,
                                                 const ANeuralNetworksOperandType*,
                                                 const ANeuralNetworksMemory* memory, size_t offset, size_t length) {
  if (memory == nullptr) return ANEURALNETWORKS_UNEXPECTED_NULL;
  if (!inside(memory, offset, length)) return ANEURALNETWORKS_BAD_DATA;
  return set_output(execution, index, memory->data + offset, length);
}

int ANeuralNetworksExecution_startCompute(ANeuralNetworksExecution* execution, ANeuralNetworksEvent** event) {
  if (execution == nullptr || event == nullptr) return ANEURALNETWORKS_UNEXPECTED_NULL;
  *event = new ANeuralNetworksEvent{compute(execution)};
  return ANEURALNETWORKS_NO_ERROR;
}

int ANeuralNetworksEvent_wait(ANeuralNetworksEvent* event) {
  return event == nullptr ? ANEURALNETWORKS_UNEXPECTED_NULL : event->result;
}

void ANeuralNetworksEvent_free(ANeuralNetworksEvent* event) { delete event; }

#if NNX_LEVEL >= 29
int ANeuralNetworksExecution_compute(ANeuralNetworksExecution* execution) { return compute(execution); }

int ANeuralNetworksExecution_getOutputOperandRank(ANeuralNetworksExecution* execution, int32_t index,
                                                  uint32_t* rank) {
  if (execution == nullptr || rank == nullptr) return ANEURALNETWORKS_UNEXPECTED_NULL;
  if (index < 0 || static_cast<size_t>(index) >= execution->outputs.size()) return ANEURALNETWORKS_BAD_DATA;
  *rank = static_cast<uint32_t>(execution->outputs[static_cast<size_t>(index)].dims.size());
  return ANEURALNETWORKS_NO_ERROR;
}

int ANeuralNetworksExecution_getOutputOperandDimensions(ANeuralNetworksExecution* execution, int32_t index,
                                                        uint32_t* dimensions) {
  if (execution == nullptr || dimensions == nullptr) return ANEURALNETWORKS_UNEXPECTED_NULL;
  if (index < 0 || static_cast<size_t>(index) >= execution->outputs.size()) return ANEURALNETWORKS_BAD_DATA;
  for (const uint32_t n : execution->outputs[static_cast<size_t>(index)].dims) *dimensions++ = n;
  return ANEURALNETWORKS_NO_ERROR;
}

int ANeuralNetworksExecution_setMeasureTiming(ANeuralNetworksExecution* execution, bool) {
  return execution == nullptr ? ANEURALNETWORKS_UNEXPECTED_NULL : ANEURALNETWORKS_NO_ERROR;
}

int ANeuralNetworksExecution_getDuration(const ANeuralNetworksExecution* execution, int32_t, uint64_t* duration) {
  if (execution == nullptr || duration == nullptr) return ANEURALNETWORKS_UNEXPECTED_NULL;
  *duration = UINT64_MAX;  // NNAPI's word for one that is not known
  return ANEURALNETWORKS_NO_ERROR;
}

int ANeuralNetworksBurst_create(ANeuralNetworksCompilation* compilation, ANeuralNetworksBurst** burst) {
  if (compilation == nullptr || burst == nullptr) return ANEURALNETWORKS_UNEXPECTED_NULL;
  *burst = new ANeuralNetworksBurst;
  return ANEURALNETWORKS_NO_ERROR;
}

void ANeuralNetworksBurst_free(ANeuralNetworksBurst* burst) { delete burst; }

int ANeuralNetworksExecution_burstCompute(ANeuralNetworksExecution* execution, ANeuralNetworksBurst* burst) {
  return burst == nullptr ? ANEURALNETWORKS_UNEXPECTED_NULL : compute(execution);
}

// Devices: there is one

int ANeuralNetworks_getDeviceCount(uint32_t* numDevices) {
  if (numDevices == nullptr) return ANEURALNETWORKS_UNEXPECTED_NULL;
  *numDevices = 1;
  return ANEURALNETWORKS_NO_ERROR;
}

int ANeuralNetworks_getDevice(uint32_t devIndex, ANeuralNetworksDevice** device) {
  static ANeuralNetworksDevice only;
  if (device == nullptr) return ANEURALNETWORKS_UNEXPECTED_NULL;
  if (devIndex > 0) return ANEURALNETWORKS_BAD_DATA;
  *device = &only;
  return ANEURALNETWORKS_NO_ERROR;
}

int ANeuralNetworksDevice_getName(const ANeuralNetworksDevice* device, const char** name) {
  if (device == nullptr || name == nullptr) return ANEURALNETWORKS_UNEXPECTED_NULL;
  *name = "nnx-recorder";
  return ANEURALNETWORKS_NO_ERROR;
}

int ANeuralNetworksDevice_getType(const ANeuralNetworksDevice* device, int32_t* type) {
  if (device == nullptr || type == nullptr) return ANEURALNETWORKS_UNEXPECTED_NULL;
  *type = ANEURALNETWORKS_DEVICE_CPU;
  return ANEURALNETWORKS_NO_ERROR;
}

int ANeuralNetworksDevice_getVersion(const ANeuralNetworksDevice* device, const char** version) {
  if (device == nullptr || version == nullptr) return ANEURALNETWORKS_UNEXPECTED_NULL;
  *version = "1";
  return ANEURALNETWORKS_NO_ERROR;
}

int ANeuralNetworksDevice_getFeatureLevel(const ANeuralNetworksDevice* device, int64_t* featureLevel) {
  if (device == nullptr || featureLevel == nullptr) return ANEURALNETWORKS_UNEXPECTED_NULL;
  *featureLevel = ANEURALNETWORKS_FEATURE_LEVEL_8;
  return ANEURALNETWORKS_NO_ERROR;
}

int ANeuralNetworksCompilation_createForDevices(ANeuralNetworksModel* model, const ANeuralNetworksDevice* const*,
                                                uint32_t, ANeuralNetworksCompilation** compilation) {
  return ANeuralNetworksCompilation_create(model, compilation);
}

int ANeuralNetworksCompilation_setCaching(ANeuralNetworksCompilation* compilation, const char*, const uint8_t*) {
  return compilation == nullptr ? ANEURALNETWORKS_UNEXPECTED_NULL : ANEURALNETWORKS_NO_ERROR;
}
#endif

#if NNX_LEVEL >= 30
int ANeuralNetworksCompilation_setPriority(ANeuralNetworksCompilation* compilation, int) {
  return compilation == nullptr ? ANEURALNETWORKS_UNEXPECTED_NULL : ANEURALNETWORKS_NO_ERROR;
}

int ANeuralNetworksCompilation_setTimeout(ANeuralNetworksCompilation* compilation, uint64_t) {
  return compilation == nullptr ? ANEURALNETWORKS_UNEXPECTED_NULL : ANEURALNETWORKS_NO_ERROR;
}

int ANeuralNetworksExecution_setTimeout(ANeuralNetworksExecution* execution, uint64_t) {
  return execution == nullptr ? ANEURALNETWORKS_UNEXPECTED_NULL : ANEURALNETWORKS_NO_ERROR;
}

int ANeuralNetworksExecution_setLoopTimeout(ANeuralNetworksExecution* execution, uint64_t) {
  return execution == nullptr ? ANEURALNETWORKS_UNEXPECTED_NULL : ANEURALNETWORKS_NO_ERROR;
}

uint64_t ANeuralNetworks_getDefaultLoopTimeout() { return 2000000000; }

uint64_t ANeuralNetworks_getMaximumLoopTimeout() { return 15000000000; }
#endif

#if NNX_LEVEL >= 31
int64_t ANeuralNetworks_getRuntimeFeatureLevel() {
  return std::atoll(setting("NNX_RECORD_LEVEL", "1000008").c_str());
}

int ANeuralNetworksExecution_setReusable(ANeuralNetworksExecution* execution, bool) {
  return execution == nullptr ? ANEURALNETWORKS_UNEXPECTED_NULL : ANEURALNETWORKS_NO_ERROR;
}

int ANeuralNetworksExecution_enableInputAndOutputPadding(ANeuralNetworksExecution* execution, bool) {
  return execution == nullptr ? ANEURALNETWORKS_UNEXPECTED_NULL : ANEURALNETWORKS_NO_ERROR;
}
#endif
