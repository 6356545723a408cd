// An NNAPI program like any other: y = relu(x + 1). Linked with the recorder it leaves its model, and gets its results.
#include <android/NeuralNetworks.h>

#include <cstdio>

#define NEED(call)                                                       \
  do {                                                                   \
    const int result = (call);                                           \
    if (result != ANEURALNETWORKS_NO_ERROR) {                            \
      std::fprintf(stderr, "%s gives %d\n", #call, result);              \
      return 1;                                                          \
    }                                                                    \
  } while (false)

int main() {
  const uint32_t sizes[] = {1, 4};
  const ANeuralNetworksOperandType tensor{ANEURALNETWORKS_TENSOR_FLOAT32, 2, sizes, 0, 0};
  const ANeuralNetworksOperandType whole{ANEURALNETWORKS_INT32, 0, nullptr, 0, 0};
  const float ones[] = {1, 1, 1, 1};
  const int32_t activation = ANEURALNETWORKS_FUSED_RELU;
  const uint32_t read[] = {0, 1, 2}, x[] = {0}, y[] = {3};

  ANeuralNetworksModel* model = nullptr;
  NEED(ANeuralNetworksModel_create(&model));
  NEED(ANeuralNetworksModel_addOperand(model, &tensor));
  NEED(ANeuralNetworksModel_addOperand(model, &tensor));
  NEED(ANeuralNetworksModel_addOperand(model, &whole));
  NEED(ANeuralNetworksModel_addOperand(model, &tensor));
  NEED(ANeuralNetworksModel_setOperandValue(model, 1, ones, sizeof ones));
  NEED(ANeuralNetworksModel_setOperandValue(model, 2, &activation, sizeof activation));
  NEED(ANeuralNetworksModel_addOperation(model, ANEURALNETWORKS_ADD, 3, read, 1, y));
  NEED(ANeuralNetworksModel_identifyInputsAndOutputs(model, 1, x, 1, y));
  NEED(ANeuralNetworksModel_finish(model));

  ANeuralNetworksCompilation* compilation = nullptr;
  NEED(ANeuralNetworksCompilation_create(model, &compilation));
  NEED(ANeuralNetworksCompilation_finish(compilation));

  const float input[] = {-3, -1, 0, 2};
  float output[4] = {};
  ANeuralNetworksExecution* execution = nullptr;
  ANeuralNetworksEvent* event = nullptr;
  NEED(ANeuralNetworksExecution_create(compilation, &execution));
  NEED(ANeuralNetworksExecution_setInput(execution, 0, nullptr, input, sizeof input));
  NEED(ANeuralNetworksExecution_setOutput(execution, 0, nullptr, output, sizeof output));
  NEED(ANeuralNetworksExecution_startCompute(execution, &event));
  NEED(ANeuralNetworksEvent_wait(event));
  std::printf("%g %g %g %g\n", static_cast<double>(output[0]), static_cast<double>(output[1]),
              static_cast<double>(output[2]), static_cast<double>(output[3]));

  ANeuralNetworksEvent_free(event);
  ANeuralNetworksExecution_free(execution);
  ANeuralNetworksCompilation_free(compilation);
  ANeuralNetworksModel_free(model);
  return 0;
}
