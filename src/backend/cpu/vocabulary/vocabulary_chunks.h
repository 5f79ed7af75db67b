// The common part of vocabulary_loss and its gradient on the CPU. One product makes the logits of a
// chunk of rows. Then each row has its log-sum-exp taken and is added to the sums. 16-bit rows and
// weights are multiplied as they are.
#pragma once

#include <array>

#include "backend/cpu/cpu_kernel.h"
#include "backend/cpu/multiply/product.h"
#include "backend/cpu/parallel.h"
#include "ops/vocabulary/vocabulary_geometry.h"

namespace thimble {

// A product for chunks of all rows that there is room for, and one for a shorter last one.
class CpuChunkProduct {
 public:
  // shape(rows) says what it is for a chunk of so many.
  template <class ShapeOf>
  CpuChunkProduct(const VocabularyGeometry& v, const ShapeOf& shape) : full_(shape(v.at_once)) {
    if (v.rest() != v.at_once) rest_ = Product(shape(v.rest()));
    rows_ = v.at_once;
  }
  CpuChunkProduct() = default;

  size_t scratch_bytes() const { return std::max(full_.scratch_bytes(), rest_.scratch_bytes()); }
  const std::string& name() const { return full_.name(); }
  void run(int64_t rows, const void* a, const void* b, void* y, std::byte* scratch) {
    (rows == rows_ ? full_ : rest_).run(a, b, y, scratch);
  }

 private:
  Product full_, rest_;
  int64_t rows_ = 0;
};

// The geometry with as many rows at once as are worth reading the weight for: one that no cache
// holds comes from memory for every chunk. An attribute that names them is heeded.
VocabularyGeometry vocabulary_on_cpu(const Signature& s);

class CpuVocabularyChunks {
 public:
  struct Chunk {
    int64_t first, rows;
    const std::byte* h;      // [rows,C]
    float* logits;           // [rows,V]
    const float* lse;        // [rows]
    const int32_t* targets;  // [rows]
  };
  struct Sums {
    double loss = 0, nll = 0;
    int64_t correct = 0;
  };

  // Takes its rooms from the workspace; `keeps_logits`: those of all chunks at the same time.
  CpuVocabularyChunks(const Signature& s, WorkspaceParts& rooms, bool keeps_logits = false);

  int64_t count() const { return (v_.rows + v_.at_once - 1) / v_.at_once; }
  size_t scratch_bytes() const { return to_logits_.scratch_bytes(); }
  const std::string& name() const { return to_logits_.name(); }

  // Makes the logits of chunk i and adds its rows to the sums.
  Chunk run(const KernelArgs& args, int64_t i, std::byte* scratch, Sums& sums);
  // Turns logits into their gradients, in place.
  void to_gradients(const Chunk& chunk, float scale) const;
  // Writes or adds the sums into the outputs of these numbers.
  static void store(const Sums& sums, const KernelArgs& args, const std::array<size_t, 3>& outputs);

 private:
  struct RowSums {
    double loss, nll;
    int64_t correct;
  };

  const VocabularyGeometry v_;
  const int64_t ignored_;
  const double smoothing_;
  const bool keeps_logits_;
  CpuChunkProduct to_logits_;
  int64_t logits_at_, sums_at_, lse_at_;
};

}  // namespace thimble
