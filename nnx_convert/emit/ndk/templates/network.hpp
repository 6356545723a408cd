// The model: what there is to build it from (model.cpp), and a network that is built, compiled and run by NNAPI.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "nnapi.hpp"

namespace nnx {

/// Numbers `first` to `first + count` of the table `numbers`.
struct Numbers {
  uint32_t first, count;
};

/// Where an operand's value is from.
enum class Value { none_yet, left_out, here, in_file, model };

/// One operand. `at`: where its value begins, in `bytes` or in the weights' file; of a model its number.
struct Operand {
  int32_t type;
  Numbers dims;
  float scale;
  int32_t zero;
  Value value;
  uint64_t at, length;
};

/// The scales of a TENSOR_QUANT8_SYMM_PER_CHANNEL operand: `first` to `first + count` of the table `scales`.
struct Channels {
  uint32_t operand, axis, first, count;
};

/// One operation; `ex`: of NNAPI-EX.
struct Operation {
  int32_t code;
  bool ex;
  Numbers inputs, outputs;
  const char* name;
};

/// A model, or a subgraph of an IF or a WHILE.
struct Graph {
  const Operand* operands;
  size_t operand_count;
  const Channels* channels;
  size_t channel_count;
  const Operation* operations;
  size_t operation_count;
  Numbers inputs, outputs;
  bool relaxed;
};

/// What the elements of an input or an output are.
enum class Element { float32, float16, int32, uint32, int8, uint8, int16, uint16, bool8 };

/// An input or an output: its name in the source file, its elements, its bytes. `step`: it is quantised, so that a
/// device may be off by one step of the grid.
struct Port {
  const char* name;
  Element element;
  bool step;
  size_t bytes;
};

/// All of model.cpp.
struct Tables {
  const char* name;
  int64_t level;
  uint64_t weights_bytes;
  const uint32_t* numbers;
  const float* scales;
  const unsigned char* bytes;
  const Graph* graphs;
  size_t graph_count;
  const Port* inputs;
  size_t input_count;
  const Port* outputs;
  size_t output_count;
};

extern const Tables tables;

using Bytes = std::vector<unsigned char>;

/// The model, built and compiled.
class Network {
 public:
  /// Build and compile it. `weights`: the path of weights.bin, which is mapped into memory. `device`: the name of one
  /// (from level 29 on), else NNAPI chooses. Throws `Error`.
  Network(const Nnapi& nnapi, const std::string& weights, const std::string& device = "");
  ~Network();
  Network(const Network&) = delete;
  Network& operator=(const Network&) = delete;

  /// Run once: the inputs in the order of `tables.inputs`, outputs in that of `tables.outputs`. Throws `Error`.
  std::vector<Bytes> run(const std::vector<Bytes>& inputs) const;

 private:
  void release();
  void map_weights(const std::string& path);
  void build(size_t number);
  void set_value(ANeuralNetworksModel* model, const Operand& operand, int32_t index, const std::string& what) const;
  void add_operations(ANeuralNetworksModel* model, const Graph& graph) const;
  void compile(const std::string& device);
  ANeuralNetworksDevice* device_called(const std::string& name) const;
  void compute(ANeuralNetworksExecution* execution) const;

  const Nnapi& nnapi_;
  ANeuralNetworksMemory* memory_ = nullptr;
  std::vector<ANeuralNetworksModel*> models_;
  ANeuralNetworksCompilation* compilation_ = nullptr;
};

/// The names of the devices, none before level 29. Throws `Error`.
std::vector<std::string> devices(const Nnapi& nnapi);

}  // namespace nnx
