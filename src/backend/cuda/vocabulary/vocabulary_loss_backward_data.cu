// vocabulary_loss_backward_data: chunk by chunk, logits, their gradients, and a product of those with
// the weight, which is frozen.
#include "backend/cuda/vocabulary/vocabulary_chunks.cuh"

namespace thimble {
namespace {

class VocabularyLossBackwardData final : public Kernel {
 public:
  VocabularyLossBackwardData(const Signature& s, CudaDevice& device)
      : device_(device),
        chunks_(s, device),
        row_bytes_(chunks_.vocabulary().width * size_of(s.inputs[0].dtype)),
        to_h_(
            device, chunks_.vocabulary(),
            [&](int64_t rows) {
              ProductShape shape = {
                  .m = rows, .n = chunks_.vocabulary().width, .k = chunks_.even_classes()};
              shape.alignment = chunks_.row_alignment();
              shape.pitch_a = chunks_.gradient_pitch();
              return shape;
            },
            s.inputs[0].dtype, s.inputs[0].dtype,
            (s.accumulate & 1u) != 0 || chunks_.has_left_over()) {
    workspace = chunks_.room() + std::max(chunks_.product_scratch(), to_h_.scratch());
    name = "cublaslt, and own";
  }

  void run(const KernelArgs& args) override {
    const bool takes_over = args.outputs.size() > 1;
    std::byte* const scratch = args.workspace + chunks_.room().count;
    float* const lse = takes_over ? args.outputs[kDataLse].as<float>() : nullptr;
    for (int64_t i = 0; i < chunks_.count(); ++i) {
      const int64_t rows = chunks_.rows(i), at = chunks_.first(i) * row_bytes_;
      chunks_.run(args, i, lse, takes_over, args.inputs[4].as<float>(), scratch);
      if (chunks_.has_left_over()) multiply_left_over(args, i);
      // From here on dh may overwrite the rows.
      to_h_.run(rows, args.workspace, args.inputs[1].data, args.outputs[0].as<std::byte>() + at,
                scratch);
    }
    if (takes_over) chunks_.add_up(args, kDataSums);
  }

 private:
  // The part of dh that the even classes' product of a chunk is added to.
  void multiply_left_over(const KernelArgs& args, int64_t chunk) const {
    const int64_t width = chunks_.vocabulary().width, rows = chunks_.rows(chunk);
    with_device_type(args.inputs[0].type.dtype, [&](auto tag) {
      using T = typename decltype(tag)::type;
      left_over_rows<<<blocks_for(rows * width, device_), kBlockThreads, 0, device_.stream>>>(
          chunks_.left_over<T>(args), reinterpret_cast<const T*>(args.workspace),
          chunks_.gradient_pitch(), rows, args.outputs[0].as<T>() + chunks_.first(chunk) * width,
          args.adds_into(0));
    });
    check_launch("a loss over a vocabulary");
  }

  CudaDevice& device_;
  const VocabularyChunks chunks_;
  const int64_t row_bytes_;  // of h
  const ChunkProduct to_h_;
};

std::unique_ptr<Kernel> make(const Signature& s, CudaDevice& device) {
  const DType dtype = s.inputs[0].dtype;
  if (!on_device(dtype) || s.inputs[1].dtype != dtype || s.inputs[0].elements() == 0)
    return nullptr;
  return std::make_unique<VocabularyLossBackwardData>(s, device);
}

}  // namespace

extern const CudaKernel cuda_vocabulary_loss_backward_data{"vocabulary_loss_backward_data", make};

}  // namespace thimble
