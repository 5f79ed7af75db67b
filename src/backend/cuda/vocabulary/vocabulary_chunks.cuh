// What vocabulary_loss and its gradient share on the device: the logits of a chunk of rows by one
// product of cuBLASLt's, in f32; then a block per row for its log-sum-exp and what it adds to the
// sums and, on the way back, the gradients of its logits, in f32 in their place, in 16 bits beside
// them. Sums of all rows are added up at the end, in one order.
//
//   scratch  | logits f32 [rows_at_once,pitch] | their gradients, if 16-bit | sums of rows | products'
#pragma once

#include <array>
#include <memory>

#include "backend/cuda/multiply/cublas_product.h"
#include "backend/cuda/reduce/row_group.cuh"
#include "backend/cuda/reduce/scalar_sums.cuh"
#include "ops/vocabulary/vocabulary_geometry.h"

namespace thimble {

struct VocabularyRows {
  int classes, pitch;
  int64_t ignored;
  float spread, on_target;  // of what is expected: of every class, and of the target on top
};

// What one row adds to loss, correct and nll.
struct VocabularyRowSums {
  double of[3];
};

// The largest logit so far, the first class that has it, and the sum of exponentials beside it.
struct Softmax {
  float largest;
  int best;
  float sum;

  __device__ static Softmax nothing() { return {-INFINITY, INT_MAX, 0}; }
  __device__ void add(float x, int c) {
    if (x > largest) {
      sum = sum * expf(largest - x) + 1;
      largest = x;
      best = c;
    } else {
      sum += expf(x - largest);
    }
  }
  __device__ static Softmax both(const Softmax& a, const Softmax& b) {
    if (b.best == INT_MAX) return a;
    if (a.best == INT_MAX) return b;
    const bool first = a.largest > b.largest || (a.largest == b.largest && a.best < b.best);
    const Softmax &high = first ? a : b, &low = first ? b : a;
    return {high.largest, high.best, high.sum + low.sum * expf(low.largest - high.largest)};
  }
};

// In every thread of the block.
__device__ inline Softmax block_softmax(Softmax own) {
  __shared__ Softmax of_warps[kRowThreads / 32];
  for (int offset = 16; offset > 0; offset /= 2) {
    const Softmax other = {__shfl_xor_sync(~0u, own.largest, offset),
                           __shfl_xor_sync(~0u, own.best, offset),
                           __shfl_xor_sync(~0u, own.sum, offset)};
    // The same order of both in both threads.
    own = (threadIdx.x & static_cast<unsigned>(offset)) == 0 ? Softmax::both(own, other)
                                                             : Softmax::both(other, own);
  }
  if (threadIdx.x % 32 == 0) of_warps[threadIdx.x / 32] = own;
  __syncthreads();
  own = of_warps[0];
  for (int w = 1; w < kRowThreads / 32; ++w) own = Softmax::both(own, of_warps[w]);
  return own;
}

// A block per row. `lse` and `sums` may be null. T is the type of gradients; without them, none is
// written.
template <class T, bool kGradients>
__global__ void __launch_bounds__(kRowThreads)
    measure_rows(VocabularyRows v, const float* logits, const int32_t* targets, float* lse,
                 VocabularyRowSums* sums, const float* normalizer, const float* upstream,
                 T* gradients) {
  const RowGroup<kRowThreads> group;
  const int64_t r = blockIdx.x;
  const float* const row = logits + r * v.pitch;
  Softmax own = Softmax::nothing();
  float all = 0;
  for (int c = group.lane; c < v.classes; c += kRowThreads) {
    own.add(row[c], c);
    if (v.spread != 0) all += row[c];
  }
  own = block_softmax(own);
  if (v.spread != 0) all = group.sum(all);
  const float log_sum = own.largest + logf(own.sum);
  const int32_t target = targets[r];
  const bool counts = target != v.ignored && target >= 0 && target < v.classes;
  if (group.lane == 0) {
    if (lse != nullptr) lse[r] = log_sum;
    if (sums != nullptr) {
      const float logit = counts ? row[target] : 0;
      const double expected = static_cast<double>(v.spread) * static_cast<double>(all) +
                              static_cast<double>(v.on_target) * static_cast<double>(logit);
      sums[r] = {};
      if (counts) {
        sums[r].of[0] = static_cast<double>(log_sum) - expected;
        sums[r].of[1] = own.best == target ? 1 : 0;
        sums[r].of[2] = static_cast<double>(log_sum) - static_cast<double>(logit);
      }
    }
  }
  if constexpr (kGradients) {
    __syncthreads();  // the target's logit has been read: gradients may lie where logits do
    const float scale = counts ? *normalizer * *upstream : 0;
    T* const to = gradients + r * v.pitch;
    for (int c = group.lane; c < v.classes; c += kRowThreads) {
      const float p = expf(row[c] - log_sum) - v.spread - (c == target ? v.on_target : 0);
      to[c] = narrow<T>(scale * p);
    }
  }
}

// A block for each of loss, correct and nll.
struct VocabularyOutputs {
  ScalarOutput of[3];
};
static __global__ void add_vocabulary_rows(const VocabularyRowSums* rows, int64_t count,
                                           VocabularyOutputs out) {
  double own = 0;
  for (int64_t r = threadIdx.x; r < count; r += blockDim.x) own += rows[r].of[blockIdx.x];
  const double sum = block_sum(own);
  if (threadIdx.x == 0) out.of[blockIdx.x](sum);
}

// A product for chunks of all rows that there is room for, and one for a shorter last one.
class ChunkProduct {
 public:
  // shape(rows) says what it is for a chunk of so many.
  template <class ShapeOf>
  ChunkProduct(CudaDevice& device, const Vocabulary& v, const ShapeOf& shape, DType factors,
               DType result, bool add)
      : rows_(v.at_once) {
    full_ = make(device, shape(v.at_once), factors, result, add);
    if (v.rest() != v.at_once) rest_ = make(device, shape(v.rest()), factors, result, add);
  }

  Bytes scratch() const {
    return rest_ == nullptr ? full_->scratch() : std::max(full_->scratch(), rest_->scratch());
  }
  void run(int64_t rows, const void* a, const void* b, void* y, std::byte* scratch) const {
    (rows == rows_ ? full_ : rest_)->run(a, b, y, scratch);
  }

 private:
  static std::unique_ptr<CublasProduct> make(CudaDevice& device, ProductShape shape, DType factors,
                                             DType result, bool add) {
    constexpr Bytes kMost(4 << 20);
    return std::make_unique<CublasProduct>(device, shape, factors, result, add,
                                           std::min(scratch_limit(shape, factors), kMost));
  }

  int64_t rows_;
  std::unique_ptr<CublasProduct> full_, rest_;
};

class VocabularyChunks {
 public:
  VocabularyChunks(const Signature& s, CudaDevice& device)
      : device_(device),
        dtype_(s.inputs[0].dtype),
        v_(s.inputs[0].shape, s.inputs[1].shape, s.attrs),
        pitch_((v_.classes + kPitchUnit - 1) / kPitchUnit * kPitchUnit),
        to_logits_(
            device, v_,
            [&](int64_t rows) {
              ProductShape shape = {.m = rows, .n = v_.classes, .k = v_.width, .transpose_b = true};
              shape.alignment = row_alignment();
              shape.pitch_y = pitch_;
              return shape;
            },
            dtype_, DType::f32, false) {
    const double smoothing = s.attrs.real("label_smoothing", 0);
    rows_ = {static_cast<int>(v_.classes), static_cast<int>(pitch_),
             s.attrs.integer("ignore_index", -1),
             static_cast<float>(smoothing / static_cast<double>(v_.classes)),
             static_cast<float>(1 - smoothing)};
  }

  const Vocabulary& vocabulary() const { return v_; }
  int64_t pitch() const { return pitch_; }
  int64_t count() const { return (v_.rows + v_.at_once - 1) / v_.at_once; }
  // Chunks begin at multiples of their rows.
  int64_t row_alignment() const {
    return alignment_of_multiples(v_.at_once * v_.width * size_of(dtype_));
  }
  int64_t first(int64_t chunk) const { return chunk * v_.at_once; }
  int64_t rows(int64_t chunk) const { return std::min(v_.at_once, v_.rows - first(chunk)); }

  // Of the parts of the scratch but for that of products.
  Bytes room(bool gradients) const { return sums_at(gradients) + sums_bytes(); }
  Bytes product_scratch() const { return to_logits_.scratch(); }

  // Logits of a chunk, and what its rows have to say. With `upstream`, the gradients of its logits
  // are returned.
  void* run(const KernelArgs& args, int64_t chunk, float* lse, bool sums, const float* upstream,
            std::byte* scratch) const {
    auto* const logits = reinterpret_cast<float*>(args.workspace);
    const int64_t begin = first(chunk);
    const auto count = static_cast<unsigned>(rows(chunk));
    VocabularyRowSums* const to = sums ? row_sums(args, upstream != nullptr) + begin : nullptr;
    const auto* const h = args.inputs[0].as<std::byte>() + begin * v_.width * size_of(dtype_);
    to_logits_.run(rows(chunk), h, args.inputs[1].data, logits, scratch);
    void* gradients = logits;
    with_device_type(dtype_, [&](auto tag) {
      using T = typename decltype(tag)::type;
      if constexpr (!std::is_same_v<T, float>) gradients = args.workspace + logit_bytes().count;
      const auto launch = [&](auto with) {
        measure_rows<T, with.value><<<count, kRowThreads, 0, device_.stream>>>(
            rows_, logits, args.inputs[2].as<int32_t>() + begin,
            lse == nullptr ? nullptr : lse + begin, to, args.inputs[3].as<float>(), upstream,
            static_cast<T*>(gradients));
      };
      if (upstream != nullptr) {
        launch(std::true_type{});
      } else {
        launch(std::false_type{});
      }
    });
    return gradients;
  }

  // After all chunks.
  void add_up(const KernelArgs& args, bool gradients, const std::array<size_t, 3>& outputs) const {
    VocabularyOutputs out{};
    for (size_t k = 0; k < outputs.size(); ++k) {
      out.of[k] = {args.outputs[outputs[k]].as<float>(), args.adds_into(outputs[k]),
                   k == 0 ? args.inputs[3].as<float>() : nullptr};
    }
    add_vocabulary_rows<<<3, kBlockThreads, 0, device_.stream>>>(row_sums(args, gradients), v_.rows,
                                                                 out);
    check_launch("a loss over a vocabulary");
  }

 private:
  // Rows of logits begin where products like them to.
  static constexpr int64_t kPitchUnit = 16;

  Bytes logit_bytes() const {
    return align_up(Bytes(v_.at_once * pitch_ * int64_t{sizeof(float)}));
  }
  Bytes sums_at(bool gradients) const {
    const bool beside = gradients && dtype_ != DType::f32;
    return logit_bytes() +
           (beside ? align_up(Bytes(v_.at_once * pitch_ * size_of(dtype_))) : Bytes());
  }
  Bytes sums_bytes() const {
    return align_up(Bytes(v_.rows * static_cast<int64_t>(sizeof(VocabularyRowSums))));
  }
  VocabularyRowSums* row_sums(const KernelArgs& args, bool gradients) const {
    return reinterpret_cast<VocabularyRowSums*>(args.workspace + sums_at(gradients).count);
  }

  CudaDevice& device_;
  const DType dtype_;
  const Vocabulary v_;
  const int64_t pitch_;  // from one row of logits to the next
  const ChunkProduct to_logits_;
  VocabularyRows rows_{};
};

}  // namespace thimble
