// Records that Python reads and writes: their fields are declared only here.
#pragma once

// Declare fields, and keep the declarations as a text, from which the module makes dtypes. All
// fields have 64 bits: doubles, integers or enumerations.
#define HPC_RECORD(...) \
  __VA_ARGS__           \
  static constexpr const char* fields = #__VA_ARGS__
