// A model as a program builds it with NNAPI's calls (calls.cpp), and what becomes of it (recorder.cpp).
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "NeuralNetworks.h"

namespace recorder {

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
int fault(int result, const std::string& text);

/// An environment variable; `otherwise` where it is not set, or empty.
std::string setting(const char* name, const char* otherwise);

/// Leave a compilation's model as a record, and have it read: an NNAPI result.
int compile(ANeuralNetworksCompilation& compilation);

/// Have an execution run, on the inputs that are set: an NNAPI result.
int compute(ANeuralNetworksExecution* execution);

}  // namespace recorder

struct ANeuralNetworksMemory {
  char* data;
  size_t size;
};

struct ANeuralNetworksModel {
  std::vector<recorder::Operand> operands;
  std::vector<recorder::Operation> operations;
  std::vector<uint32_t> inputs, outputs;
  bool relaxed = false, finished = false;
};

struct ANeuralNetworksCompilation {
  const ANeuralNetworksModel* model;
  std::string folder;
};

struct ANeuralNetworksExecution {
  const ANeuralNetworksCompilation* compilation;
  std::vector<recorder::Given> inputs;
  std::vector<recorder::Taken> outputs;
};

struct ANeuralNetworksEvent {
  int result;
};

struct ANeuralNetworksDevice {};

struct ANeuralNetworksBurst {};
