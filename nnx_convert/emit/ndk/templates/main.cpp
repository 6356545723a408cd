// Runs the model on its golden inputs and says how far each output is from the golden one.
// Ends with 0 where all are near enough, 1 where one is not, 2 where the run fails.
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <fstream>
#include <iterator>
#include <limits>

#include "network.hpp"

namespace {

using nnx::Bytes;
using nnx::Element;

const char* const usage =
    "check [FOLDER] [--nnapi PATH] [--device NAME] [--rtol X] [--steps N] [--list]\n"
    "  FOLDER     where weights.bin and golden/ are [.]\n"
    "  --nnapi    NNAPI's library [$NNX_NNAPI, else libneuralnetworks.so]\n"
    "  --device   the one to compile for, from feature level 29 on [NNAPI chooses]\n"
    "  --rtol     how far a float may be off, in parts of the output's largest [1e-4; float16 and relaxed 1e-2]\n"
    "  --steps    how many steps of its grid a quantised number may be off [1]\n"
    "  --list     the names of the devices\n";

struct Options {
  std::string folder = ".", nnapi, device;
  double rtol = -1, steps = 1;
  bool list = false;
};

double number(const char* text) {
  char* end = nullptr;
  const double found = std::strtod(text, &end);
  if (end == text || *end != '\0' || !(found >= 0)) throw nnx::Error(std::string(text) + " is no such number");
  return found;
}

Options options(int count, char** words) {
  Options found;
  for (int i = 1; i < count; ++i) {
    const std::string word = words[i];
    const bool valued = word == "--nnapi" || word == "--device" || word == "--rtol" || word == "--steps";
    if (valued && i + 1 == count) throw nnx::Error(word + " takes a value\n" + usage);
    if (word == "--nnapi") found.nnapi = words[++i];
    else if (word == "--device") found.device = words[++i];
    else if (word == "--rtol") found.rtol = number(words[++i]);
    else if (word == "--steps") found.steps = number(words[++i]);
    else if (word == "--list") found.list = true;
    else if (word.rfind("--", 0) == 0) throw nnx::Error("there is no option " + word + "\n" + usage);
    else found.folder = word;
  }
  return found;
}

Bytes golden(const std::string& folder, const char* kind, size_t index, size_t bytes) {
  const std::string path = folder + "/golden/" + kind + std::to_string(index) + ".bin";
  std::ifstream file(path, std::ios::binary);
  if (!file) throw nnx::Error(path + " cannot be read");
  Bytes found{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  if (found.size() != bytes) throw nnx::Error(path + " has not " + std::to_string(bytes) + " bytes");
  return found;
}

template <typename T>
double as(const unsigned char* at) {
  T value;
  std::memcpy(&value, at, sizeof value);
  return static_cast<double>(value);
}

double half(const unsigned char* at) {
  uint16_t bits;
  std::memcpy(&bits, at, sizeof bits);
  const int exponent = bits >> 10 & 31, fraction = bits & 1023;
  const double size = exponent == 31 ? (fraction == 0 ? std::numeric_limits<double>::infinity()
                                                      : std::numeric_limits<double>::quiet_NaN())
                      : exponent == 0 ? std::ldexp(fraction, -24)
                                      : std::ldexp(fraction + 1024, exponent - 25);
  return (bits & 0x8000) != 0 ? -size : size;
}

size_t width(Element element) {
  switch (element) {
    case Element::float32: case Element::int32: case Element::uint32: return 4;
    case Element::float16: case Element::int16: case Element::uint16: return 2;
    case Element::int8: case Element::uint8: case Element::bool8: return 1;
  }
  return 1;
}

double value(Element element, const unsigned char* at) {
  switch (element) {
    case Element::float32: return as<float>(at);
    case Element::float16: return half(at);
    case Element::int32: return as<int32_t>(at);
    case Element::uint32: return as<uint32_t>(at);
    case Element::int8: return as<int8_t>(at);
    case Element::uint8: case Element::bool8: return as<uint8_t>(at);
    case Element::int16: return as<int16_t>(at);
    case Element::uint16: return as<uint16_t>(at);
  }
  return 0;
}

/// How far two numbers are apart; two that are no numbers are equal, and two infinities of one sign.
double apart(double a, double b) {
  if (a == b || (std::isnan(a) && std::isnan(b))) return 0;
  const double difference = std::fabs(a - b);
  return std::isnan(difference) ? std::numeric_limits<double>::infinity() : difference;
}

/// Say how far an output is from the golden one; whether that is near enough.
bool near_enough(const nnx::Port& port, const Bytes& want, const Bytes& got, const Options& options) {
  double largest = 0, size = 0;
  for (size_t at = 0; at < want.size(); at += width(port.element)) {
    const double a = value(port.element, &want[at]), b = value(port.element, &got[at]);
    largest = std::fmax(largest, apart(a, b));
    if (std::isfinite(a)) size = std::fmax(size, std::fabs(a));
  }
  const bool real = port.element == Element::float32 || port.element == Element::float16;
  const bool coarse = port.element == Element::float16 || nnx::tables.graphs[nnx::tables.graph_count - 1].relaxed;
  const double allowed = real ? (options.rtol >= 0 ? options.rtol : coarse ? 1e-2 : 1e-4) * size
                              : port.step ? options.steps : 0;
  const bool good = largest <= allowed;
  std::printf("%s: largest difference %.9g%s, %s (allowed %.3g)\n", port.name, largest, port.step ? " steps" : "",
              good ? "good" : "TOO FAR", allowed);
  return good;
}

int checked(const Options& options) {
  const nnx::Nnapi nnapi(options.nnapi);
  if (options.list) {
    for (const std::string& name : nnx::devices(nnapi)) std::printf("%s\n", name.c_str());
    return 0;
  }
  const nnx::Network network(nnapi, options.folder + "/weights.bin", options.device);
  std::vector<Bytes> inputs;
  for (size_t i = 0; i < nnx::tables.input_count; ++i) {
    inputs.push_back(golden(options.folder, "in", i, nnx::tables.inputs[i].bytes));
  }
  const std::vector<Bytes> outputs = network.run(inputs);
  bool good = true;
  for (size_t i = 0; i < outputs.size(); ++i) {
    const nnx::Port& port = nnx::tables.outputs[i];
    good = near_enough(port, golden(options.folder, "out", i, port.bytes), outputs[i], options) && good;
  }
  return good ? 0 : 1;
}

}  // namespace

int main(int count, char** words) {
  try {
    return checked(options(count, words));
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s: %s\n", nnx::tables.name, error.what());
    return 2;
  }
}
