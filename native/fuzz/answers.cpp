// Arbitrary answers.
#include "case.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  return hpc::fuzz::run(data, size, false, true);
}
