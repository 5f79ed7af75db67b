// gather_fold_8bit(m u8 [T], scale f32 [blocks], dense gradient of n elements, first i64 [1],
//                  mask u8 [ceil(n / 8)], rng i64 [3] = {seed, step, microbatch}[, factor f32 [1]])
//   -> (m, scale); attrs stream (Builder::next_random_stream), scaled (ops/update/update.h).
// gather and momentum_fold_8bit in one: the gradient of one sparse weight goes into the momentum of
// the pool, and the pool has no gradient. Blocks that lie in this weight's part of the pool, and
// the two that reach beyond it, are rounded anew; the others are left alone.
// REQUIRES: first + ones of the mask <= T.
#include "ops/sparse/packed_weight.h"
#include "ops/update/block_fold.h"

namespace thimble {
namespace {

constexpr size_t kOwnInputs = 6;

std::vector<TensorType> infer(std::span<const TensorType> inputs, const Attrs& attrs) {
  check_extras("gather_fold_8bit", inputs, kOwnInputs, attrs);
  check_floating("gather_fold_8bit", "gradient", inputs[2]);
  const TensorType pool = {inputs[0].shape, inputs[2].dtype};
  check_packed("gather_fold_8bit", pool, inputs[3], inputs[4], inputs[2].elements());
  check_fold("gather_fold_8bit", inputs[0], inputs[1], inputs[5], pool, attrs);
  return {inputs[0], inputs[1]};
}

void reference(const KernelArgs& args) {
  const float factor = factor_of(args, kOwnInputs);
  if (factor == 0) return;
  const RandomStream random(args.inputs[5].as<int64_t>(), args.attrs->integer("stream"));
  with_float_type(args.inputs[2].type.dtype, [&]<class T>(TypeTag<T>) {
    const T* dense = args.inputs[2].as<T>();
    StateBlock share = {};
    const int64_t first = *args.inputs[3].as<int64_t>();
    int64_t next = first;
    for_each_one(args.inputs[4].as<uint8_t>(), 0, args.inputs[2].elements(), [&](int64_t at) {
      share[static_cast<size_t>(next % kCodeBlock)] = factor * static_cast<float>(dense[at]);
      if (++next % kCodeBlock != 0) return;
      fold_block(args, random, next / kCodeBlock - 1, share);
      share = {};
    });
    if (next > first && next % kCodeBlock != 0) fold_block(args, random, next / kCodeBlock, share);
  });
}

// Of the pool, at most as many elements as the gradient has.
Work work(const Signature& s) {
  const auto elements =
      static_cast<double>(std::min(s.inputs[0].elements(), s.inputs[2].elements()));
  return {50 * elements, static_cast<double>((s.inputs[2].bytes() + s.inputs[4].bytes()).count)};
}

std::vector<Sample> samples() {
  std::vector<Sample> result;
  const auto add = [&](Shape dense, int64_t total, double first, bool scaled) {
    const int64_t mask = bitmap_bytes(dense.elements());
    Sample sample = {.inputs = {{{total}, DType::u8},
                                {{code_blocks(total)}},
                                {dense},
                                {{1}, DType::i64},
                                {{mask}, DType::u8},
                                {{3}, DType::i64}},
                     .attrs = {{"stream", int64_t{7}}, {"scaled", int64_t{scaled}}},
                     .fills = {kAnyCodes,
                               kAnyScales,
                               {},
                               {Fill::Kind::labels, first, first + 1},
                               {Fill::Kind::bytes},
                               {Fill::Kind::labels, 0, 1000}}};
    if (scaled) sample.inputs.push_back({{1}}), sample.fills.push_back({Fill::Kind::uniform, 0, 1});
    result.push_back(std::move(sample));
  };
  add({5, 7}, 600, 240, false);           // over the edge of a block
  add({16, 3, 3, 8}, 1300, 100, true);    // several blocks, shared at both ends
  add({64, 3, 3, 16}, 9900, 512, false);  // from a block's beginning
  add({1}, 5, 4, false);
  return result;
}

}  // namespace

extern const OpDef op_gather_fold_8bit{
    .name = "gather_fold_8bit",
    .summary = "adds the gradient of a sparse weight into the pool's momentum in 8 bits",
    .infer = infer,
    .reference = reference,
    .work = work,
    .samples = samples,
    .recompute = Recompute::never,
    .updates = {{0, 0}, {1, 1}},
};

}  // namespace thimble
