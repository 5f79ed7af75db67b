// vocabulary_loss_backward, and the same without the gradient of the weight: chunk by chunk, logits
// and their gradients, and a product of those with the rows and with the weight.
//
// In f32 every chunk is added to the gradient of the weight where it lies. In 16 bits that would
// round once a chunk. So the gradients of all logits are kept and multiplied once, if they take no
// more bytes than the weight's gradient does in f32. Else that gradient is summed in f32, in the
// workspace.
#pragma once

#include "backend/cpu/vocabulary/vocabulary_chunks.h"

namespace thimble {

template <bool kWeighs>
class CpuVocabularyLossBackward final : public Kernel {
 public:
  explicit CpuVocabularyLossBackward(const Signature& s)
      : v_(vocabulary_on_cpu(s)),
        dtype_(s.inputs[0].dtype),
        narrow_(dtype_ != DType::f32),
        rounds_(narrow_ && Product::native(dtype_)),
        keeps_all_(kWeighs && narrow_ && (rounds_ ? 2 : 4) * v_.rows <= 4 * v_.width),
        chunks_(s, rooms_, keeps_all_ && !rounds_) {
    const bool adds_h = (s.accumulate & 1u) != 0;
    const auto to_h = [&](int64_t rows) {
      return DnnlProductShape{.m = rows,
                              .n = v_.width,
                              .k = v_.classes,
                              .add = adds_h,
                              .a = gradient_type(),
                              .b = s.inputs[1].dtype,
                              .result = dtype_};
    };
    if (rounds_) {
      const int64_t rows = keeps_all_ ? v_.rows : v_.at_once;
      rounded_at_ = rooms_.take(static_cast<size_t>(rows * v_.classes) * sizeof(uint16_t));
    }
    if (keeps_all_) {
      all_to_h_ = Product(to_h(v_.rows));
    } else {
      to_h_ = CpuChunkProduct(v_, to_h);
    }
    if (kWeighs) prepare_weight((s.accumulate & 2u) != 0);
    scratch_at_ = rooms_.take(
        std::max({chunks_.scratch_bytes(), to_h_.scratch_bytes(), all_to_h_.scratch_bytes(),
                  to_weight_.scratch_bytes(), first_to_weight_.scratch_bytes()}));
    name = chunks_.name();
    workspace = rooms_.total();
  }

  void run(const KernelArgs& args) override {
    const float scale = *args.inputs[3].as<const float>() * *args.inputs[4].as<const float>();
    const int64_t weights = v_.classes * v_.width;
    std::byte* const scratch = args.workspace + scratch_at_;
    float* d_weight = nullptr;
    if (kWeighs) {
      d_weight =
          room_for(args.outputs[1], 0, reinterpret_cast<float*>(args.workspace + d_weight_at_));
    }
    if (adds_up() && args.adds_into(1)) widen_all(args.outputs[1], weights, d_weight);
    const bool takes_over = args.outputs.size() > kLoss.gradients;
    const void* first_gradients = nullptr;
    CpuVocabularyChunks::Sums sums;
    for (int64_t i = 0; i < chunks_.count(); ++i) {
      const auto chunk = chunks_.run(args, i, scratch, sums);
      if (takes_over) {
        std::copy_n(chunk.lse, chunk.rows, args.outputs[kLoss.lse()].as<float>() + chunk.first);
      }
      chunks_.to_gradients(chunk, scale);
      const void* const gradients = rounds_ ? rounded(args, chunk) : chunk.logits;
      if (i == 0) first_gradients = gradients;
      if (keeps_all_) continue;
      if (kWeighs && i == 0) {
        first_to_weight_.run(gradients, chunk.h, d_weight, scratch);
      } else if (kWeighs) {
        to_weight_.run(chunk.rows, gradients, chunk.h, d_weight, scratch);
      }
      // From here on dh may overwrite the rows.
      std::byte* const dh =
          args.outputs[0].as<std::byte>() + chunk.first * v_.width * size_of(dtype_);
      to_h_.run(chunk.rows, gradients, args.inputs[1].data, dh, scratch);
    }
    if (keeps_all_) {
      first_to_weight_.run(first_gradients, args.inputs[0].data, args.outputs[1].data, scratch);
      all_to_h_.run(first_gradients, args.inputs[1].data, args.outputs[0].data, scratch);
    }
    if (adds_up()) narrow_all(d_weight, weights, args.outputs[1]);
    if (takes_over) CpuVocabularyChunks::store(sums, args, kLoss.sums());
  }

 private:
  static constexpr LossOutputs kLoss = loss_outputs(kWeighs);

  void prepare_weight(bool adds) {
    const auto to_weight = [&](int64_t rows, bool add) {
      return DnnlProductShape{.m = v_.classes,
                              .n = v_.width,
                              .k = rows,
                              .transpose_a = true,
                              .add = add,
                              .a = gradient_type(),
                              .b = dtype_,
                              .result = keeps_all_ ? dtype_ : DType::f32};
    };
    first_to_weight_ = Product(to_weight(keeps_all_ ? v_.rows : v_.at_once, adds));
    if (keeps_all_) return;
    if (chunks_.count() > 1) {
      to_weight_ = CpuChunkProduct(v_, [&](int64_t rows) { return to_weight(rows, true); });
    }
    if (narrow_) {
      d_weight_at_ = rooms_.take(static_cast<size_t>(v_.classes * v_.width) * sizeof(float));
    }
  }
  // Whether the gradient of the weight adds up in f32, in the workspace.
  bool adds_up() const { return kWeighs && narrow_ && !keeps_all_; }

  // Of the gradients of logits, as factors.
  DType gradient_type() const { return rounds_ ? dtype_ : DType::f32; }

  const void* rounded(const KernelArgs& args, const CpuVocabularyChunks::Chunk& chunk) const {
    auto* const to = reinterpret_cast<uint16_t*>(args.workspace + rounded_at_) +
                     (keeps_all_ ? chunk.first * v_.classes : 0);
    Parts(chunk.rows * v_.classes, 4).run([&](int, int64_t begin, int64_t end) {
      narrow(dtype_, chunk.logits + begin, end - begin, to + begin);
    });
    return to;
  }

  static void widen_all(const TensorRef& from, int64_t count, float* to) {
    Parts(count, 4).run(
        [&](int, int64_t begin, int64_t end) { widen(from, begin, end - begin, to + begin); });
  }
  static void narrow_all(const float* from, int64_t count, const TensorRef& to) {
    Parts(count, 4).run(
        [&](int, int64_t begin, int64_t end) { narrow(from + begin, to, begin, end - begin); });
  }

  const VocabularyGeometry v_;
  const DType dtype_;
  const bool narrow_, rounds_, keeps_all_;
  WorkspaceParts rooms_;
  CpuVocabularyChunks chunks_;
  Product first_to_weight_, all_to_h_;
  CpuChunkProduct to_h_, to_weight_;
  int64_t rounded_at_ = 0, d_weight_at_ = 0, scratch_at_ = 0;
};

}  // namespace thimble
