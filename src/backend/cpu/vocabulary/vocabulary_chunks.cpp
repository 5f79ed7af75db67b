#include "backend/cpu/vocabulary/vocabulary_chunks.h"

#include <cmath>

#include "backend/cpu/reduce/softmax_rows.h"

namespace thimble {
namespace {

int64_t take(WorkspaceParts& rooms, int64_t floats) {
  return rooms.take(static_cast<size_t>(floats) * sizeof(float));
}

THIMBLE_FOR_EACH_ISA double log_sum_exp(const float* x, int64_t count, float largest) {
  const double sum = row_sum(count, [=](int64_t c) { return vector_exp(x[c] - largest); });
  return static_cast<double>(largest) + std::log(sum);
}
THIMBLE_FOR_EACH_ISA float maximum(const float* x, int64_t count) { return row_maximum(x, count); }
THIMBLE_FOR_EACH_ISA double sum_of(const float* x, int64_t count) {
  return row_sum(count, [=](int64_t c) { return x[c]; });
}
THIMBLE_FOR_EACH_ISA void gradient_row(float* x, int64_t count, float lse, float scale,
                                       float everywhere) {
  for (int64_t c = 0; c < count; ++c) x[c] = scale * (vector_exp(x[c] - lse) - everywhere);
}

}  // namespace

VocabularyGeometry vocabulary_on_cpu(const Signature& s) {
  constexpr int64_t kCached = 8 << 20, kRows = 256;
  const VocabularyGeometry usual(s.inputs[0].shape, s.inputs[1].shape, s.attrs);
  const bool asked = s.attrs.integer("rows_at_once", 0) > 0;
  if (asked || usual.at_once >= kRows || s.inputs[1].bytes().count <= kCached) return usual;
  return {s.inputs[0].shape, s.inputs[1].shape, {{"rows_at_once", kRows}}};
}

CpuVocabularyChunks::CpuVocabularyChunks(const Signature& s, WorkspaceParts& rooms,
                                         bool keeps_logits)
    : v_(vocabulary_on_cpu(s)),
      ignored_(s.attrs.integer("ignore_index", -1)),
      smoothing_(s.attrs.real("label_smoothing", 0)),
      keeps_logits_(keeps_logits),
      to_logits_(v_,
                 [&](int64_t rows) {
                   return DnnlProductShape{.m = rows,
                                           .n = v_.classes,
                                           .k = v_.width,
                                           .transpose_b = true,
                                           .a = s.inputs[0].dtype,
                                           .b = s.inputs[1].dtype};
                 }),
      logits_at_(take(rooms, (keeps_logits ? v_.rows : v_.at_once) * v_.classes)),
      sums_at_(rooms.take(static_cast<size_t>(v_.at_once) * sizeof(RowSums))),
      lse_at_(take(rooms, v_.at_once)) {}

CpuVocabularyChunks::Chunk CpuVocabularyChunks::run(const KernelArgs& args, int64_t i,
                                                    std::byte* scratch, Sums& sums) {
  const auto room = [&](int64_t at) { return reinterpret_cast<float*>(args.workspace + at); };
  const int64_t first = i * v_.at_once, rows = std::min(v_.at_once, v_.rows - first);
  const Chunk chunk = {
      first,
      rows,
      args.inputs[0].as<const std::byte>() + first * v_.width * size_of(args.inputs[0].type.dtype),
      room(logits_at_) + (keeps_logits_ ? first * v_.classes : 0),
      room(lse_at_),
      args.inputs[2].as<const int32_t>() + first};
  to_logits_.run(rows, chunk.h, args.inputs[1].data, chunk.logits, scratch);
  auto* const of_rows = reinterpret_cast<RowSums*>(args.workspace + sums_at_);
  Parts(rows, v_.classes * 8).run([&](int, int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      const float* const x = chunk.logits + r * v_.classes;
      const int64_t target = chunk.targets[r];
      const float largest = maximum(x, v_.classes);
      const double lse = log_sum_exp(x, v_.classes, largest);
      room(lse_at_)[r] = static_cast<float>(lse);
      of_rows[r] = {};
      if (target == ignored_ || target < 0 || target >= v_.classes) continue;
      double expected = (1 - smoothing_) * static_cast<double>(x[target]);
      if (smoothing_ > 0)
        expected += smoothing_ / static_cast<double>(v_.classes) * sum_of(x, v_.classes);
      of_rows[r].loss = lse - expected;
      of_rows[r].nll = lse - static_cast<double>(x[target]);
      // Of equal logits the first is the largest.
      of_rows[r].correct = x[target] == largest && std::find(x, x + target, largest) == x + target;
    }
  });
  for (int64_t r = 0; r < rows; ++r) {
    sums.loss += of_rows[r].loss;
    sums.nll += of_rows[r].nll;
    sums.correct += of_rows[r].correct;
  }
  return chunk;
}

void CpuVocabularyChunks::to_gradients(const Chunk& chunk, float scale) const {
  const auto everywhere = static_cast<float>(smoothing_ / static_cast<double>(v_.classes));
  Parts(chunk.rows, v_.classes * 8).run([&](int, int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      float* const x = chunk.logits + r * v_.classes;
      const int64_t target = chunk.targets[r];
      const bool counts = target != ignored_ && target >= 0 && target < v_.classes;
      gradient_row(x, v_.classes, chunk.lse[r], counts ? scale : 0, everywhere);
      if (counts) x[target] -= scale * static_cast<float>(1 - smoothing_);
    }
  });
}

void CpuVocabularyChunks::store(const Sums& sums, const KernelArgs& args,
                                const std::array<size_t, 3>& outputs) {
  const auto normalizer = static_cast<double>(*args.inputs[3].as<const float>());
  const std::array<double, 3> values = {normalizer * sums.loss, static_cast<double>(sums.correct),
                                        sums.nll};
  for (size_t k = 0; k < values.size(); ++k) {
    float* const to = args.outputs[outputs[k]].as<float>();
    *to = (args.adds_into(outputs[k]) ? *to : 0) + static_cast<float>(values[k]);
  }
}

}  // namespace thimble
