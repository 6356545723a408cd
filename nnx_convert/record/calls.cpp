// NNAPI's calls, those of the feature levels up to NNX_LEVEL, 27 to 31 [31].
#include <sys/mman.h>

#include <cmath>
#include <cstdlib>
#include <utility>

#include "recorder.hpp"

namespace {

using recorder::compute;
using recorder::fault;
using recorder::Given;
using recorder::Operand;
using recorder::Operation;
using recorder::setting;
using recorder::Taken;
using recorder::Value;

template <typename T>
std::vector<T> listed(const T* items, uint32_t count) {
  return count == 0 ? std::vector<T>() : std::vector<T>(items, items + count);
}

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

/// What a call tells about a device.
template <typename T>
int told(const ANeuralNetworksDevice* device, T* place, T value) {
  if (device == nullptr || place == nullptr) return ANEURALNETWORKS_UNEXPECTED_NULL;
  *place = value;
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
  return recorder::compile(*compilation);
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
  return told(device, name, "nnx-recorder");
}

int ANeuralNetworksDevice_getType(const ANeuralNetworksDevice* device, int32_t* type) {
  return told(device, type, int32_t{ANEURALNETWORKS_DEVICE_CPU});
}

int ANeuralNetworksDevice_getVersion(const ANeuralNetworksDevice* device, const char** version) {
  return told(device, version, "1");
}

int ANeuralNetworksDevice_getFeatureLevel(const ANeuralNetworksDevice* device, int64_t* featureLevel) {
  return told(device, featureLevel, int64_t{ANEURALNETWORKS_FEATURE_LEVEL_8});
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
