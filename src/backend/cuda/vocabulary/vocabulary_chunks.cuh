// The common part of vocabulary_loss and its gradient on the device. One product of cuBLASLt's
// makes the logits of a chunk of rows in f32. Kernels over rows follow (vocabulary_rows.cuh).
// Chunks are multiples of eight rows. Sums of all rows are added up at the end, in one order.
//
// A frozen weight of 16 bits beside rows of f32 is decoded to that a slab of classes at a time.
//
//   scratch  | logits f32 [rows_at_once,pitch], then their gradients | sums of rows | slab | products'
#pragma once

#include <array>
#include <memory>

#include "backend/cuda/multiply/coded_slab.cuh"
#include "backend/cuda/multiply/cublas_product.h"
#include "backend/cuda/reduce/scalar_sums.cuh"
#include "backend/cuda/vocabulary/vocabulary_rows.cuh"
#include "ops/vocabulary/vocabulary_geometry.h"

namespace thimble {

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
  ChunkProduct(CudaDevice& device, const VocabularyGeometry& v, const ShapeOf& shape, DType factors,
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
    constexpr Bytes kMost(32 << 20);
    return std::make_unique<CublasProduct>(device, shape, factors, result, add,
                                           std::min(scratch_limit(shape, factors), kMost));
  }

  int64_t rows_;
  std::unique_ptr<CublasProduct> full_, rest_;
};

// Classes that are multiplied together: all that products cover, or slabs of them.
struct ClassSlabs {
  int64_t classes, each;

  int64_t count() const { return (classes + each - 1) / each; }
  int64_t first(int64_t slab) const { return slab * each; }
  int64_t size(int64_t slab) const { return std::min(each, classes - first(slab)); }
};

// The products of chunks with slabs of classes. With `sums`, those of later slabs are added to the
// first one's.
class SlabProducts {
 public:
  // shape(rows, classes) says what it is for so many.
  template <class ShapeOf>
  SlabProducts(CudaDevice& device, const VocabularyGeometry& v, const ClassSlabs& slabs,
               const ShapeOf& shape, DType factors, DType result, bool add, bool sums) {
    const auto make = [&](int64_t classes, bool adds) {
      return std::make_unique<ChunkProduct>(
          device, v, [&](int64_t rows) { return shape(rows, classes); }, factors, result, adds);
    };
    for (int64_t s = 0; s < slabs.count(); ++s) {
      const bool adds = add || (sums && s > 0), alike = s > 1 || (s == 1 && adds == add);
      const bool same = alike && slabs.size(s) == slabs.size(s - 1);
      if (!same) made_.push_back(make(slabs.size(s), adds));
      of_slab_.push_back(made_.size() - 1);
    }
  }

  Bytes scratch() const {
    Bytes most;
    for (const auto& product : made_) most = std::max(most, product->scratch());
    return most;
  }
  void run(int64_t slab, int64_t rows, const void* a, const void* b, void* y,
           std::byte* scratch) const {
    made_[of_slab_[static_cast<size_t>(slab)]]->run(rows, a, b, y, scratch);
  }

 private:
  std::vector<std::unique_ptr<ChunkProduct>> made_;
  std::vector<size_t> of_slab_;
};

class VocabularyChunks {
 public:
  VocabularyChunks(const Signature& s, CudaDevice& device)
      : device_(device),
        dtype_(s.inputs[0].dtype),
        v_(in_even_chunks({s.inputs[0].shape, s.inputs[1].shape, s.attrs})),
        decoded_(s.inputs[1].dtype != dtype_),
        slabs_{even_classes(),
               decoded_ ? slab_columns(even_classes(), v_.width, size_of(dtype_)) : even_classes()},
        pitch_((v_.classes + kPitchUnit - 1) / kPitchUnit * kPitchUnit),
        to_logits_(
            device, v_, slabs_,
            [&](int64_t rows, int64_t classes) {
              ProductShape shape = {.m = rows, .n = classes, .k = v_.width, .transpose_b = true};
              shape.alignment = std::min(row_alignment(), slab_alignment());
              shape.pitch_y = pitch_;
              return shape;
            },
            dtype_, DType::f32, false, false) {
    const double smoothing = s.attrs.real("label_smoothing", 0);
    rows_ = {static_cast<int>(v_.classes), static_cast<int>(pitch_),
             s.attrs.integer("ignore_index", -1),
             static_cast<float>(smoothing / static_cast<double>(v_.classes)),
             static_cast<float>(1 - smoothing)};
  }

  const VocabularyGeometry& vocabulary() const { return v_; }
  // The classes that products cover. The others are left over.
  int64_t even_classes() const { return even_part(v_.classes); }
  bool has_left_over() const { return even_classes() < v_.classes; }
  template <class T>
  LeftOver<T> left_over(const KernelArgs& args) const {
    const int64_t first = even_classes();
    return {static_cast<int>(first), static_cast<int>(v_.classes - first),
            static_cast<int>(v_.width),
            decoded_ ? reinterpret_cast<const T*>(slab_room(args) + slab_bytes().count)
                     : args.inputs[1].as<const T>() + first * v_.width};
  }
  const ClassSlabs& slabs() const { return slabs_; }
  // Of what slabs after the first begin at.
  int64_t slab_alignment() const {
    return slabs_.count() == 1 ? kArenaAlignment
                               : alignment_of_multiples(slabs_.each * size_of(dtype_));
  }
  // Before all chunks: classes that are left over, in the type of the rows.
  void begin(const KernelArgs& args) const {
    if (!decoded_ || !has_left_over()) return;
    decode(args, {even_classes(), 0, v_.classes - even_classes(), v_.width},
           slab_room(args) + slab_bytes().count);
  }
  // The weights of a slab, until the next one's.
  const void* weights(const KernelArgs& args, int64_t slab) const {
    if (!decoded_) return args.inputs[1].data;
    std::byte* const to = slab_room(args);
    decode(args, {slabs_.first(slab), 0, slabs_.size(slab), v_.width}, to);
    return to;
  }
  int64_t count() const { return (v_.rows + v_.at_once - 1) / v_.at_once; }
  // Chunks begin at multiples of their rows.
  int64_t row_alignment() const {
    return alignment_of_multiples(v_.at_once * v_.width * size_of(dtype_));
  }
  int64_t first(int64_t chunk) const { return chunk * v_.at_once; }
  int64_t rows(int64_t chunk) const { return std::min(v_.at_once, v_.rows - first(chunk)); }

  // Numbers from one row of gradients to the next.
  int64_t gradient_pitch() const { return pitch_ * size_of(DType::f32) / size_of(dtype_); }

  // Of the parts of the scratch but for that of products.
  Bytes room() const { return logit_bytes() + sums_bytes() + slab_bytes() + left_over_bytes(); }
  Bytes product_scratch() const { return to_logits_.scratch(); }

  // Logits of a chunk, and what its rows have to say. With `upstream`, the gradients of its logits
  // are where they were.
  void run(const KernelArgs& args, int64_t chunk, float* lse, bool sums, const float* upstream,
           std::byte* scratch) const {
    auto* const logits = reinterpret_cast<float*>(args.workspace);
    const int64_t begin = first(chunk);
    const auto count = static_cast<unsigned>(rows(chunk));
    VocabularyRowSums* const to = sums ? row_sums(args) + begin : nullptr;
    const auto* const h = args.inputs[0].as<std::byte>() + begin * v_.width * size_of(dtype_);
    for (int64_t slab = 0; slab < slabs_.count(); ++slab) {
      to_logits_.run(slab, rows(chunk), h, weights(args, slab), logits + slabs_.first(slab),
                     scratch);
    }
    const auto launch = [&](auto tag, auto with, auto threads) {
      using T = typename decltype(tag)::type;
      measure_rows<T, with.value, threads.value><<<count, threads.value, 0, device_.stream>>>(
          rows_, left_over<T>(args), args.inputs[0].as<const T>() + begin * v_.width, logits,
          args.inputs[2].as<int32_t>() + begin, lse == nullptr ? nullptr : lse + begin, to,
          args.inputs[3].as<float>(), upstream);
    };
    with_row_threads(v_.classes, [&](auto threads) {
      with_device_type(dtype_, [&](auto tag) {
        if (upstream == nullptr) return launch(tag, std::false_type{}, threads);
        launch(tag, std::true_type{}, threads);
      });
    });
  }

  // After all chunks.
  void add_up(const KernelArgs& args, const std::array<size_t, 3>& outputs) const {
    VocabularyOutputs out{};
    for (size_t k = 0; k < outputs.size(); ++k) {
      out.of[k] = {args.outputs[outputs[k]].as<float>(), args.adds_into(outputs[k]),
                   k == 0 ? args.inputs[3].as<float>() : nullptr};
    }
    add_vocabulary_rows<<<3, kBlockThreads, 0, device_.stream>>>(row_sums(args), v_.rows, out);
    check_launch("a loss over a vocabulary");
  }

 private:
  // Rows of logits begin where products like them to.
  static constexpr int64_t kPitchUnit = 16;

  static VocabularyGeometry in_even_chunks(VocabularyGeometry v) {
    v.at_once = std::min((v.at_once + kEvenUnit - 1) / kEvenUnit * kEvenUnit, v.rows);
    return v;
  }

  Bytes logit_bytes() const {
    return align_up(Bytes(v_.at_once * pitch_ * int64_t{sizeof(float)}));
  }
  Bytes sums_bytes() const {
    return align_up(Bytes(v_.rows * static_cast<int64_t>(sizeof(VocabularyRowSums))));
  }
  Bytes slab_bytes() const {
    return decoded_ ? align_up(Bytes(slabs_.each * v_.width * size_of(dtype_))) : Bytes();
  }
  Bytes left_over_bytes() const {
    return decoded_ ? align_up(Bytes(kEvenUnit * v_.width * size_of(dtype_))) : Bytes();
  }
  std::byte* slab_room(const KernelArgs& args) const {
    return args.workspace + (logit_bytes() + sums_bytes()).count;
  }
  void decode(const KernelArgs& args, const SlabPlace& place, std::byte* to) const {
    const CodedFormat format =
        args.inputs[1].type.dtype == DType::f16 ? CodedFormat::f16 : CodedFormat::bf16;
    decode_on_device({format, v_.classes, v_.width}, args.inputs.subspan(1, 1), place, dtype_, to,
                     device_);
  }
  VocabularyRowSums* row_sums(const KernelArgs& args) const {
    return reinterpret_cast<VocabularyRowSums*>(args.workspace + logit_bytes().count);
  }

  CudaDevice& device_;
  const DType dtype_;
  const VocabularyGeometry v_;
  const bool decoded_;  // the weight is of another type than its rows
  const ClassSlabs slabs_;
  const int64_t pitch_;  // from one row of logits to the next
  const SlabProducts to_logits_;
  VocabularyRows rows_{};
};

}  // namespace thimble
