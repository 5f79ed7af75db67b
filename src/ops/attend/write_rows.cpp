// write_rows(cache [N,P,C], rows [N,T,C], first i32 [N]) -> cache, in whose row n `rows` lie at
// positions [first, first + T); those beyond the cache are left out. A KV cache grows by it, in place.
#include <cstring>

#include "ops/checks.h"
#include "ops/reference.h"

namespace thimble {
namespace {

std::vector<TensorType> infer(std::span<const TensorType> inputs, const Attrs&) {
  check_inputs("write_rows", inputs, 3);
  const TensorType &cache = inputs[0], &rows = inputs[1];
  check_floating_rank("write_rows", "cache [N,P,C]", cache, 3);
  check_floating_rank("write_rows", "rows [N,T,C]", rows, 3);
  check_type("write_rows", "rows", rows,
             {{cache.shape[0], rows.shape[1], cache.shape[2]}, cache.dtype});
  check_type("write_rows", "first positions", inputs[2], {{cache.shape[0]}, DType::i32});
  return {cache};
}

void reference(const KernelArgs& args) {
  const TensorRef &cache = args.outputs[0], &rows = args.inputs[1];
  const int32_t* const first = args.inputs[2].as<const int32_t>();
  const int64_t places = cache.type.shape[1], count = rows.type.shape[1];
  const int64_t bytes = cache.type.shape[2] * size_of(cache.type.dtype);
  for (int64_t n = 0; n < cache.type.shape[0]; ++n) {
    const int64_t begin = std::max<int64_t>(0, -int64_t{first[n]});
    const int64_t end = std::min(count, places - first[n]);
    if (begin >= end) continue;
    std::memcpy(cache.as<std::byte>() + (n * places + first[n] + begin) * bytes,
                rows.as<const std::byte>() + (n * count + begin) * bytes,
                static_cast<size_t>((end - begin) * bytes));
  }
}

// Rows are read and stored once, however large the cache is.
Work work(const Signature& s) { return {0, 2 * static_cast<double>(s.inputs[1].bytes().count)}; }

std::vector<Sample> samples() {
  const auto sample = [](Shape cache, int64_t count, double low, double high) {
    return Sample{.inputs = {{cache}, {{cache[0], count, cache[2]}}, {{cache[0]}, DType::i32}},
                  .fills = {{}, {}, {Fill::Kind::labels, low, high}}};
  };
  return {sample({2, 9, 6}, 1, 0, 9), sample({3, 7, 4}, 5, -6, 9), sample({1, 64, 32}, 16, 0, 48)};
}

}  // namespace

extern const OpDef op_write_rows{
    .name = "write_rows",
    .summary = "rows of a KV cache, written at a position",
    .infer = infer,
    .reference = reference,
    .work = work,
    .samples = samples,
    .recompute = Recompute::never,
    .updates = {{0, 0}},
};

}  // namespace thimble
