// vocabulary_loss_backward, and the same without the gradient of the weight: chunk by chunk, logits,
// their gradients, and a product of those with the rows and with the weight.
#pragma once

#include "backend/cuda/vocabulary/vocabulary_chunks.cuh"

namespace thimble {

template <bool kWeighs>
class VocabularyLossBackward final : public Kernel {
 public:
  VocabularyLossBackward(const Signature& s, CudaDevice& device)
      : device_(device),
        chunks_(s, device),
        row_bytes_(chunks_.vocabulary().width * size_of(s.inputs[0].dtype)),
        to_h_(
            device, chunks_.vocabulary(), chunks_.slabs(),
            [&](int64_t rows, int64_t classes) { return h_shape(rows, classes); },
            s.inputs[0].dtype, s.inputs[0].dtype,
            (s.accumulate & 1u) != 0 || chunks_.has_left_over(), true) {
    workspace = std::max(chunks_.product_scratch(), to_h_.scratch());
    if (kWeighs) {
      first_to_weight_ = weight_product(s, (s.accumulate & 2u) != 0);
      if (chunks_.count() > 1) to_weight_ = weight_product(s, true);
    }
    workspace = workspace + chunks_.room();
    name = "cublaslt, and own";
  }

  void run(const KernelArgs& args) override {
    const bool takes_over = args.outputs.size() > kLoss.gradients;
    std::byte* const scratch = args.workspace + chunks_.room().count;
    const void* const d = args.workspace;  // gradients of a chunk's logits
    float* const lse = takes_over ? args.outputs[kLoss.lse()].as<float>() : nullptr;
    chunks_.begin(args);
    for (int64_t i = 0; i < chunks_.count(); ++i) {
      const int64_t rows = chunks_.rows(i), at = chunks_.first(i) * row_bytes_;
      chunks_.run(args, i, lse, takes_over, args.inputs[4].as<float>(), scratch);
      if (kWeighs) {
        (i == 0 ? *first_to_weight_ : *to_weight_)
            .run(rows, d, args.inputs[0].as<std::byte>() + at, args.outputs[1].data, scratch);
      }
      if (chunks_.has_left_over()) multiply_left_over(args, i);
      // From here on dh may overwrite the rows.
      const int64_t number = size_of(args.inputs[0].type.dtype);
      for (int64_t s = 0; s < chunks_.slabs().count(); ++s) {
        to_h_.run(s, rows, static_cast<const std::byte*>(d) + chunks_.slabs().first(s) * number,
                  chunks_.weights(args, s), args.outputs[0].as<std::byte>() + at, scratch);
      }
    }
    if (takes_over) chunks_.add_up(args, kLoss.sums());
  }

 private:
  static constexpr LossOutputs kLoss = loss_outputs(kWeighs);

  // The part of the classes that a chunk's products leave over. It is added to dh.
  void multiply_left_over(const KernelArgs& args, int64_t chunk) const {
    const VocabularyGeometry& v = chunks_.vocabulary();
    const int64_t rows = chunks_.rows(chunk), pitch = chunks_.gradient_pitch();
    with_device_type(args.inputs[0].type.dtype, [&](auto tag) {
      using T = typename decltype(tag)::type;
      const LeftOver<T> classes = chunks_.left_over<T>(args);
      const T* const d = reinterpret_cast<const T*>(args.workspace);
      const int64_t at = chunks_.first(chunk) * v.width;
      if (kWeighs) {
        const dim3 grid(static_cast<unsigned>((v.width + kLeftOverColumns - 1) / kLeftOverColumns),
                        static_cast<unsigned>(classes.count));
        left_over_weights<<<grid, kLeftOverColumns * kLeftOverGroups, 0, device_.stream>>>(
            classes, d, pitch, args.inputs[0].as<const T>() + at, static_cast<int>(rows),
            args.outputs[1].as<T>() + classes.first * v.width, chunk > 0 || args.adds_into(1));
      }
      left_over_rows<<<blocks_for(rows * v.width, device_), kBlockThreads, 0, device_.stream>>>(
          classes, d, pitch, rows, args.outputs[0].as<T>() + at, args.adds_into(0));
    });
    check_launch("a loss over a vocabulary");
  }

  ProductShape h_shape(int64_t rows, int64_t classes) const {
    const VocabularyGeometry& v = chunks_.vocabulary();
    ProductShape shape = {.m = rows, .n = v.width, .k = classes};
    shape.alignment = std::min(chunks_.row_alignment(), chunks_.slab_alignment());
    shape.pitch_a = chunks_.gradient_pitch();
    return shape;
  }
  std::unique_ptr<ChunkProduct> weight_product(const Signature& s, bool add) {
    const auto shape_of = [&](int64_t rows) {
      const VocabularyGeometry& v = chunks_.vocabulary();
      ProductShape shape = {
          .m = chunks_.even_classes(), .n = v.width, .k = rows, .transpose_a = true};
      shape.alignment = chunks_.row_alignment();
      shape.pitch_a = chunks_.gradient_pitch();
      return shape;
    };
    const DType dtype = s.inputs[0].dtype;
    auto product =
        std::make_unique<ChunkProduct>(device_, chunks_.vocabulary(), shape_of, dtype, dtype, add);
    workspace = std::max(workspace, product->scratch());
    return product;
  }

  CudaDevice& device_;
  const VocabularyChunks chunks_;
  const int64_t row_bytes_;  // of h
  const SlabProducts to_h_;
  std::unique_ptr<ChunkProduct> first_to_weight_, to_weight_;  // the second is added to the first
};

template <bool kWeighs>
std::unique_ptr<Kernel> make_vocabulary_backward(const Signature& s, CudaDevice& device) {
  if (!on_device(s.inputs[0].dtype) || s.inputs[0].elements() == 0) return nullptr;
  return std::make_unique<VocabularyLossBackward<kWeighs>>(s, device);
}

}  // namespace thimble
