// The setting of models that predict a token or a class at every position: how many of their rows
// have logits at a time.
#pragma once

#include "base/field.h"

namespace thimble {

// With fewer, products would wait for the vocabulary's weight to pass by.
inline constexpr int64_t kLossRowsOnGpu = 1024;

inline void list_loss_rows(int64_t& rows, Fields& list, unsigned affects,
                           std::string unused_reason = {}) {
  list.whole("loss-rows", rows, {.least = 1, .most = 1 << 30, .open = 0},
             {.help = "tokens whose logits exist at a time",
              .more = "tokens whose logits exist at a time, in scratch; more are faster on a GPU, "
                      "and sums over them are rounded less often",
              .usual = "64, or a quarter of the width; on a GPU 1024",
              .affects = affects,
              .technique = "loss rows",
              .unused_reason = std::move(unused_reason)});
}

}  // namespace thimble
