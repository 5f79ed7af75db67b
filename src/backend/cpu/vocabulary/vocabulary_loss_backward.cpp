// vocabulary_loss_backward: chunk by chunk, logits, their gradients in place, and a product of those
// with the rows and with the weight. A 16-bit gradient of the weight adds up in f32.
#include "backend/cpu/vocabulary/vocabulary_chunks.h"

namespace thimble {
namespace {

class VocabularyLossBackward final : public Kernel {
 public:
  explicit VocabularyLossBackward(const Signature& s)
      : v_(s.inputs[0].shape, s.inputs[1].shape, s.attrs),
        staged_(s.inputs[0].dtype != DType::f32),
        chunks_(s, rooms_),
        to_h_(v_,
              [&](int64_t rows) {
                return DnnlProductShape{
                    .m = rows, .n = v_.width, .k = v_.classes, .add = (s.accumulate & 1u) != 0};
              }),
        first_to_weight_(weight_shape(v_.at_once, (s.accumulate & 2u) != 0)) {
    if (chunks_.count() > 1) {
      to_weight_ = ChunkProduct(v_, [&](int64_t rows) { return weight_shape(rows, true); });
    }
    if (staged_) {
      d_rows_at_ = take(v_.at_once * v_.width);
      d_weight_at_ = take(v_.classes * v_.width);
    }
    scratch_at_ =
        rooms_.take(std::max({chunks_.scratch_bytes(), to_h_.scratch_bytes(),
                              first_to_weight_.scratch_bytes(), to_weight_.scratch_bytes()}));
    name = chunks_.name();
    workspace = rooms_.total();
  }

  void run(const KernelArgs& args) override {
    const float scale = *args.inputs[3].as<const float>() * *args.inputs[4].as<const float>();
    const float* const weight = chunks_.weight(args);
    const int64_t weights = v_.classes * v_.width;
    std::byte* const scratch = args.workspace + scratch_at_;
    float* const d_weight = room_for(args.outputs[1], 0, room(args, d_weight_at_));
    if (staged_ && args.adds_into(1)) widen(args.outputs[1], 0, weights, d_weight);
    const bool takes_over = args.outputs.size() > 2;
    VocabularyChunks::Sums sums;
    for (int64_t i = 0; i < chunks_.count(); ++i) {
      const auto chunk = chunks_.run(args, i, weight, scratch, sums);
      if (takes_over) {
        std::copy_n(chunk.lse, chunk.rows, args.outputs[kBackwardLse].as<float>() + chunk.first);
      }
      chunks_.to_gradients(chunk, scale);
      if (i == 0) {
        first_to_weight_.run(chunk.logits, chunk.h, d_weight, scratch);
      } else {
        to_weight_.run(chunk.rows, chunk.logits, chunk.h, d_weight, scratch);
      }
      // From here on dh may overwrite the rows.
      const int64_t first = chunk.first * v_.width, count = chunk.rows * v_.width;
      float* const dh = room_for(args.outputs[0], first, room(args, d_rows_at_));
      if (staged_ && args.adds_into(0)) widen(args.outputs[0], first, count, dh);
      to_h_.run(chunk.rows, chunk.logits, weight, dh, scratch);
      commit(dh, args.outputs[0], first, count);
    }
    commit(d_weight, args.outputs[1], 0, weights);
    if (takes_over) VocabularyChunks::store(sums, args, kBackwardSums);
  }

 private:
  DnnlProductShape weight_shape(int64_t rows, bool add) const {
    return {.m = v_.classes, .n = v_.width, .k = rows, .transpose_a = true, .add = add};
  }
  int64_t take(int64_t floats) { return rooms_.take(static_cast<size_t>(floats) * sizeof(float)); }
  static float* room(const KernelArgs& args, int64_t at) {
    return reinterpret_cast<float*>(args.workspace + at);
  }

  const Vocabulary v_;
  const bool staged_;
  WorkspaceParts rooms_;
  VocabularyChunks chunks_;
  ChunkProduct to_h_;
  Product first_to_weight_;
  ChunkProduct to_weight_;
  int64_t d_rows_at_ = 0, d_weight_at_ = 0, scratch_at_ = 0;
};

}  // namespace

extern const CpuKernel cpu_vocabulary_loss_backward{
    "vocabulary_loss_backward", make_if_supported_where<VocabularyLossBackward, stageable_input>};

}  // namespace thimble
