// Records and end of a model that predicts the next token of a row.
#pragma once

#include <vector>

#include "base/field.h"
#include "model/loss_rows.h"
#include "model/model.h"

namespace thimble {

// Settings that the device decides where the user does not.
struct NextToken {
  int64_t loss_rows = 0;   // 0: the op's own
  bool joined = false;     // products add biases and shortcuts (Layers::affine)
  bool documents = false;  // a row holds several, of which 'begins' says where they do
  int64_t cache = 0;       // generating: positions of a KV cache that rows continue; 0: none

  void complete(bool on_gpu) {
    if (on_gpu && loss_rows == 0) loss_rows = kLossRowsOnGpu;
    if (on_gpu) joined = true;
  }
  void adopt(std::span<const RecordField> data) {
    documents = find_field(data, "begins") != nullptr;
  }
};

// Set by whoever plans steps of text generation.
inline constexpr std::string_view kCacheField = "cache";
inline void list_cache(int64_t& cache, Fields& list) {
  list.whole(kCacheField, cache, {.least = 1, .most = 1'000'000, .open = 0},
             {.help = "positions of a KV cache, of steps that generate",
              .usual = "none",
              .flag = false,
              .recorded = false});
}

inline std::vector<RecordField> next_token_records(int64_t length, int64_t vocabulary,
                                                   bool documents) {
  std::vector<RecordField> fields;
  for (const char* name : {"tokens", "targets"}) {
    fields.push_back({.name = name, .dtype = DType::i32, .shape = {length}, .limit = vocabulary});
  }
  if (documents) {
    fields.push_back({.name = "begins", .dtype = DType::i32, .shape = {length}, .limit = length});
  }
  return fields;
}

}  // namespace thimble
