#include "network.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace nnx {

namespace {

const uint32_t* of(const Numbers& numbers) { return tables.numbers + numbers.first; }

std::string placed(const char* what, size_t number) { return std::string(what) + " " + std::to_string(number); }

}  // namespace

Network::Network(const Nnapi& nnapi, const std::string& weights, const std::string& device) : nnapi_(nnapi) {
  try {
    if (nnapi_.feature_level && nnapi_.feature_level() < tables.level) {
      throw Error("the model takes feature level " + std::to_string(tables.level) + ", this NNAPI is of level " +
                  std::to_string(nnapi_.feature_level()));
    }
    if (tables.weights_bytes > 0) map_weights(weights);
    for (size_t number = 0; number < tables.graph_count; ++number) build(number);
    compile(device);
  } catch (...) {
    release();
    throw;
  }
}

Network::~Network() { release(); }

void Network::release() {
  if (compilation_ != nullptr) nnapi_.compilation_free(compilation_);
  while (!models_.empty()) {
    nnapi_.model_free(models_.back());
    models_.pop_back();
  }
  if (memory_ != nullptr) nnapi_.memory_free(memory_);
}

void Network::map_weights(const std::string& path) {
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) throw Error("the weights " + path + " cannot be read");
  struct stat found {};
  const bool whole = fstat(file, &found) == 0 && static_cast<uint64_t>(found.st_size) == tables.weights_bytes;
  const int result =
      whole ? nnapi_.memory_from_fd(static_cast<size_t>(tables.weights_bytes), PROT_READ, file, size_t{0}, &memory_)
            : ANEURALNETWORKS_NO_ERROR;
  close(file);
  if (!whole) throw Error("the weights " + path + " have not " + std::to_string(tables.weights_bytes) + " bytes");
  need(result, "mapping the weights");
}

void Network::build(size_t number) {
  const Graph& graph = tables.graphs[number];
  ANeuralNetworksModel* model = nullptr;
  need(nnapi_.model_create(&model), "a model");
  models_.push_back(model);
  for (size_t i = 0; i < graph.operand_count; ++i) {
    const Operand& operand = graph.operands[i];
    const ANeuralNetworksOperandType type{operand.type, operand.dims.count,
                                          operand.dims.count > 0 ? of(operand.dims) : nullptr, operand.scale,
                                          operand.zero};
    need(nnapi_.add_operand(model, &type), placed("operand", i));
  }
  for (size_t i = 0; i < graph.channel_count; ++i) {
    const Channels& channels = graph.channels[i];
    const ANeuralNetworksSymmPerChannelQuantParams scales{channels.axis, channels.count,
                                                          tables.scales + channels.first};
    need(nnapi_.set_channels(model, static_cast<int32_t>(channels.operand), &scales),
         placed("the scales of operand", channels.operand));
  }
  for (size_t i = 0; i < graph.operand_count; ++i) {
    set_value(model, graph.operands[i], static_cast<int32_t>(i), placed("the value of operand", i));
  }
  add_operations(model, graph);
  need(nnapi_.identify(model, graph.inputs.count, of(graph.inputs), graph.outputs.count, of(graph.outputs)),
       "inputs and outputs");
  if (graph.relaxed) need(nnapi_.relax(model, true), "relaxed precision");
  need(nnapi_.model_finish(model), "the model");
}

void Network::set_value(ANeuralNetworksModel* model, const Operand& operand, int32_t index,
                        const std::string& what) const {
  const auto length = static_cast<size_t>(operand.length);
  switch (operand.value) {
    case Value::none_yet:
      return;
    case Value::left_out:
      return need(nnapi_.set_value(model, index, nullptr, size_t{0}), what);
    case Value::here:
      return need(nnapi_.set_value(model, index, tables.bytes + operand.at, length), what);
    case Value::in_file:
      return need(nnapi_.set_value_from_memory(model, index, memory_, static_cast<size_t>(operand.at), length), what);
    case Value::model:
      return need(nnapi_.set_value_from_model(model, index, models_[static_cast<size_t>(operand.at)]), what);
  }
}

void Network::add_operations(ANeuralNetworksModel* model, const Graph& graph) const {
  for (size_t i = 0; i < graph.operation_count; ++i) {
    const Operation& o = graph.operations[i];
    const std::string what = placed("operation", i) + " " + o.name;
    const auto& add = o.ex ? nnapi_.add_operation_ex : nnapi_.add_operation;
    need(add(model, o.code, o.inputs.count, of(o.inputs), o.outputs.count, of(o.outputs)), what);
  }
}

void Network::compile(const std::string& device) {
  if (device.empty()) {
    need(nnapi_.compilation_create(models_.back(), &compilation_), "a compilation");
  } else {
    const ANeuralNetworksDevice* chosen = device_called(device);
    need(nnapi_.compilation_create_for_devices(models_.back(), &chosen, 1U, &compilation_), "a compilation for " + device);
  }
  need(nnapi_.compilation_set_preference(compilation_, ANEURALNETWORKS_PREFER_SUSTAINED_SPEED), "the preference");
  need(nnapi_.compilation_finish(compilation_), "compiling");
}

ANeuralNetworksDevice* Network::device_called(const std::string& name) const {
  const std::vector<std::string> names = devices(nnapi_);
  for (size_t i = 0; i < names.size(); ++i) {
    ANeuralNetworksDevice* found = nullptr;
    if (names[i] != name) continue;
    need(nnapi_.device(static_cast<uint32_t>(i), &found), name);
    return found;
  }
  throw Error("there is no device " + name);
}

std::vector<Bytes> Network::run(const std::vector<Bytes>& inputs) const {
  if (inputs.size() != tables.input_count) throw Error("the model takes another number of inputs");
  ANeuralNetworksExecution* execution = nullptr;
  need(nnapi_.execution_create(compilation_, &execution), "an execution");
  std::vector<Bytes> outputs;
  try {
    for (size_t i = 0; i < inputs.size(); ++i) {
      need(nnapi_.execution_set_input(execution, static_cast<int32_t>(i), nullptr, inputs[i].data(), inputs[i].size()),
           placed("input", i));
    }
    for (size_t i = 0; i < tables.output_count; ++i) {
      outputs.emplace_back(tables.outputs[i].bytes);
      need(nnapi_.execution_set_output(execution, static_cast<int32_t>(i), nullptr, outputs[i].data(),
                                       outputs[i].size()),
           placed("output", i));
    }
    compute(execution);
  } catch (...) {
    nnapi_.execution_free(execution);
    throw;
  }
  nnapi_.execution_free(execution);
  return outputs;
}

void Network::compute(ANeuralNetworksExecution* execution) const {
  if (nnapi_.execution_compute) return need(nnapi_.execution_compute(execution), "the run");
  ANeuralNetworksEvent* event = nullptr;  // level 27 and 28 have only this way
  need(nnapi_.execution_start(execution, &event), "the run");
  const int result = nnapi_.event_wait(event);
  nnapi_.event_free(event);
  need(result, "the run");
}

std::vector<std::string> devices(const Nnapi& nnapi) {
  std::vector<std::string> names;
  uint32_t count = 0;
  if (nnapi.device_count) need(nnapi.device_count(&count), "the devices");
  for (uint32_t i = 0; i < count; ++i) {
    ANeuralNetworksDevice* device = nullptr;
    const char* name = nullptr;
    need(nnapi.device(i, &device), placed("device", i));
    need(nnapi.device_name(device, &name), placed("device", i));
    names.emplace_back(name);
  }
  return names;
}

}  // namespace nnx
