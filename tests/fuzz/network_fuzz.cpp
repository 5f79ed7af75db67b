// libFuzzer: any bytes as a network's file give a model or a sentence. One source, two programs, by the
// file's ending: fuzz_net (.json) and fuzz_onnx (.onnx). `make fuzz` runs them from the nets of tests/import.
#include <unistd.h>

#include <cstdlib>

#include "base/error.h"
#include "base/io/file.h"
#include "model/model.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const std::string path =
      std::string("/dev/shm/thimble-fuzz-") + std::to_string(getpid()) + THIMBLE_FUZZ_ENDING;
  thimble::write_file(path, std::string(reinterpret_cast<const char*>(data), size));
  try {
    thimble::build_model({.name = path, .batch = 2});
  } catch (const thimble::UserError&) {  // a sentence: what is wanted
  }
  return 0;
}
