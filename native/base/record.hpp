// Records that Python reads and writes: what their fields are stands here alone.
#pragma once

// Declare fields, and keep the declarations as a text, of which the module makes dtypes. All are of
// 64 bits: doubles, or whole numbers, as those of enumerations.
#define HPC_RECORD(...) \
  __VA_ARGS__           \
  static constexpr const char* fields = #__VA_ARGS__
