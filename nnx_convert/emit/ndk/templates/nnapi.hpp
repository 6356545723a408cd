// NNAPI's calls, found in its library while the program runs: no SDK is needed to build, and what a device's level
// has not is only missed where it is called.
#pragma once

#include <stdexcept>
#include <string>

#include "NeuralNetworks.h"

namespace nnx {

/// What went wrong, in a sentence.
struct Error : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// One call by its name; null where the library has none of that name.
template <typename Function>
struct Call {
  const char* name;
  Function function = nullptr;

  explicit operator bool() const { return function != nullptr; }

  /// Call it; throws `Error` where it is not there.
  template <typename... Arguments>
  auto operator()(Arguments... arguments) const {
    if (function == nullptr) throw Error(std::string("this NNAPI has no ") + name + ": the model takes more than it has");
    return function(arguments...);
  }
};

#define NNX_CALL(member, name) Call<decltype(&name)> member{#name}

/// The library and its calls.
class Nnapi {
 public:
  /// Load it: `path`, else $NNX_NNAPI, else libneuralnetworks.so; throws `Error`.
  explicit Nnapi(const std::string& path = "");
  ~Nnapi();
  Nnapi(const Nnapi&) = delete;
  Nnapi& operator=(const Nnapi&) = delete;

  NNX_CALL(memory_from_fd, ANeuralNetworksMemory_createFromFd);
  NNX_CALL(memory_free, ANeuralNetworksMemory_free);
  NNX_CALL(model_create, ANeuralNetworksModel_create);
  NNX_CALL(model_free, ANeuralNetworksModel_free);
  NNX_CALL(model_finish, ANeuralNetworksModel_finish);
  NNX_CALL(add_operand, ANeuralNetworksModel_addOperand);
  NNX_CALL(set_value, ANeuralNetworksModel_setOperandValue);
  NNX_CALL(set_value_from_memory, ANeuralNetworksModel_setOperandValueFromMemory);
  NNX_CALL(set_value_from_model, ANeuralNetworksModel_setOperandValueFromModel);
  NNX_CALL(set_channels, ANeuralNetworksModel_setOperandSymmPerChannelQuantParams);
  NNX_CALL(add_operation, ANeuralNetworksModel_addOperation);
  NNX_CALL(add_operation_ex, ANeuralNetworksModel_addOperationEx);
  NNX_CALL(identify, ANeuralNetworksModel_identifyInputsAndOutputs);
  NNX_CALL(relax, ANeuralNetworksModel_relaxComputationFloat32toFloat16);
  NNX_CALL(compilation_create, ANeuralNetworksCompilation_create);
  NNX_CALL(compilation_create_for_devices, ANeuralNetworksCompilation_createForDevices);
  NNX_CALL(compilation_set_preference, ANeuralNetworksCompilation_setPreference);
  NNX_CALL(compilation_finish, ANeuralNetworksCompilation_finish);
  NNX_CALL(compilation_free, ANeuralNetworksCompilation_free);
  NNX_CALL(execution_create, ANeuralNetworksExecution_create);
  NNX_CALL(execution_set_input, ANeuralNetworksExecution_setInput);
  NNX_CALL(execution_set_output, ANeuralNetworksExecution_setOutput);
  NNX_CALL(execution_compute, ANeuralNetworksExecution_compute);
  NNX_CALL(execution_start, ANeuralNetworksExecution_startCompute);
  NNX_CALL(execution_free, ANeuralNetworksExecution_free);
  NNX_CALL(event_wait, ANeuralNetworksEvent_wait);
  NNX_CALL(event_free, ANeuralNetworksEvent_free);
  NNX_CALL(device_count, ANeuralNetworks_getDeviceCount);
  NNX_CALL(device, ANeuralNetworks_getDevice);
  NNX_CALL(device_name, ANeuralNetworksDevice_getName);
  NNX_CALL(feature_level, ANeuralNetworks_getRuntimeFeatureLevel);

 private:
  template <typename Function>
  void find(Call<Function>& call);

  void* library_;
};

#undef NNX_CALL

/// Throw `Error` where a call did not return ANEURALNETWORKS_NO_ERROR.
void need(int result, const std::string& what);

}  // namespace nnx
