// Bytes of simulations in which anything is damaged.
#include "case.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  return hpc::fuzz::load_damaged(data, size);
}
