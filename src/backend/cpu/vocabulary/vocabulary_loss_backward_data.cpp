// vocabulary_loss_backward_data: chunk by chunk, logits, their gradients, and a product of those with
// the weight.
#include "backend/cpu/vocabulary/vocabulary_chunks.h"

namespace thimble {
namespace {

class VocabularyLossBackwardData final : public Kernel {
 public:
  explicit VocabularyLossBackwardData(const Signature& s)
      : v_(vocabulary_on_cpu(s)),
        dtype_(s.inputs[0].dtype),
        rounds_(dtype_ != DType::f32 && Product::native(dtype_)),
        chunks_(s, rooms_),
        to_h_(v_, [&](int64_t rows) {
          return DnnlProductShape{.m = rows,
                                  .n = v_.width,
                                  .k = v_.classes,
                                  .add = (s.accumulate & 1u) != 0,
                                  .a = rounds_ ? dtype_ : DType::f32,
                                  .b = s.inputs[1].dtype,
                                  .result = dtype_};
        }) {
    if (rounds_) {
      rounded_at_ = rooms_.take(static_cast<size_t>(v_.at_once * v_.classes) * sizeof(uint16_t));
    }
    scratch_at_ = rooms_.take(std::max(chunks_.scratch_bytes(), to_h_.scratch_bytes()));
    name = chunks_.name();
    workspace = rooms_.total();
  }

  void run(const KernelArgs& args) override {
    const float scale = *args.inputs[3].as<const float>() * *args.inputs[4].as<const float>();
    std::byte* const scratch = args.workspace + scratch_at_;
    const bool takes_over = args.outputs.size() > 1;
    VocabularyChunks::Sums sums;
    for (int64_t i = 0; i < chunks_.count(); ++i) {
      const auto chunk = chunks_.run(args, i, scratch, sums);
      if (takes_over) {
        std::copy_n(chunk.lse, chunk.rows, args.outputs[kDataLse].as<float>() + chunk.first);
      }
      chunks_.to_gradients(chunk, scale);
      // From here on dh may overwrite the rows.
      std::byte* const dh =
          args.outputs[0].as<std::byte>() + chunk.first * v_.width * size_of(dtype_);
      to_h_.run(chunk.rows, rounds_ ? rounded(args, chunk) : chunk.logits, args.inputs[1].data, dh,
                scratch);
    }
    if (takes_over) VocabularyChunks::store(sums, args, kDataSums);
  }

 private:
  const void* rounded(const KernelArgs& args, const VocabularyChunks::Chunk& chunk) const {
    auto* const to = reinterpret_cast<uint16_t*>(args.workspace + rounded_at_);
    Parts(chunk.rows * v_.classes, 4).run([&](int, int64_t begin, int64_t end) {
      narrow(dtype_, chunk.logits + begin, end - begin, to + begin);
    });
    return to;
  }

  const Vocabulary v_;
  const DType dtype_;
  const bool rounds_;
  WorkspaceParts rooms_;
  VocabularyChunks chunks_;
  ChunkProduct to_h_;
  int64_t rounded_at_ = 0, scratch_at_ = 0;
};

}  // namespace

extern const CpuKernel cpu_vocabulary_loss_backward_data{
    "vocabulary_loss_backward_data",
    make_if_supported_where<VocabularyLossBackwardData, stageable_input>};

}  // namespace thimble
