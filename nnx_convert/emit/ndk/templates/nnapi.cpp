#include "nnapi.hpp"

#include <dlfcn.h>

#include <cstdlib>

namespace nnx {

Nnapi::Nnapi(const std::string& path) {
  const char* given = std::getenv("NNX_NNAPI");
  const std::string name = !path.empty() ? path : given != nullptr ? given : "libneuralnetworks.so";
  library_ = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library_ == nullptr) throw Error(std::string("no NNAPI: ") + dlerror());
  find(memory_from_fd), find(memory_free);
  find(model_create), find(model_free), find(model_finish);
  find(add_operand), find(set_value), find(set_value_from_memory), find(set_value_from_model), find(set_channels);
  find(add_operation), find(add_operation_ex), find(identify), find(relax);
  find(compilation_create), find(compilation_create_for_devices), find(compilation_set_preference);
  find(compilation_finish), find(compilation_free);
  find(execution_create), find(execution_set_input), find(execution_set_output), find(execution_compute);
  find(execution_start), find(execution_free);
  find(event_wait), find(event_free);
  find(device_count), find(device), find(device_name), find(feature_level);
}

Nnapi::~Nnapi() { dlclose(library_); }

template <typename Function>
void Nnapi::find(Call<Function>& call) {
  call.function = reinterpret_cast<Function>(dlsym(library_, call.name));
}

void need(int result, const std::string& what) {
  static const char* const names[] = {@RESULTS@};
  if (result == ANEURALNETWORKS_NO_ERROR) return;
  const bool known = result > 0 && static_cast<size_t>(result) < sizeof names / sizeof *names;
  throw Error(what + ": NNAPI says " + (known ? names[result] : std::to_string(result)));
}

}  // namespace nnx
