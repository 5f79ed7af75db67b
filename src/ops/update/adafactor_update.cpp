// adafactor_update(w [R, ...], g, rows f32 [R], columns f32 [C], lr f32 [1], step f32 [1], ...)
//   -> (w, rows, columns); attrs in ops/update/adafactor.h; see ops/update/update.h for what may follow. C:
// elements of a row.
// The second moment of element (i, j) is rows_i columns_j / mean(rows), so that R + C numbers stand
// for R C. Vectors have nothing to factor: adafactor_vector_update.
#include "ops/update/adafactor.h"

namespace thimble {
namespace {

constexpr size_t kOwnInputs = 6;

std::vector<TensorType> infer(std::span<const TensorType> inputs, const Attrs& attrs) {
  check_extras("adafactor_update", inputs, kOwnInputs, attrs);
  check_like_weight("adafactor_update", inputs, 2);
  const TensorType& w = inputs[0];
  user_check(w.shape.rank() >= 2 && w.elements() > 0,
             "[adafactor_update] wants a weight with two axes or more, got {}", to_string(w));
  check_type("adafactor_update", "rows", inputs[2], {{w.shape[0]}, DType::f32});
  check_type("adafactor_update", "columns", inputs[3], {{w.elements() / w.shape[0]}, DType::f32});
  check_scalars("adafactor_update", inputs, 4, kOwnInputs);
  return {w, inputs[2], inputs[3]};
}

void reference(const KernelArgs& args) {
  run_update(args, kOwnInputs, [&](const auto& elements) {
    const AdafactorStep step(elements, args, 4, 5);
    const int64_t rows = args.outputs[1].elements(), columns = args.outputs[2].elements();
    float* by_row = args.outputs[1].template as<float>();
    float* by_column = args.outputs[2].template as<float>();
    // What a row or a column becomes: `count` elements from `first` on, `stride` apart.
    const auto averaged = [&](float before, int64_t first, int64_t count, int64_t stride) {
      double sum = 0;
      for (int64_t i = 0; i < count; ++i) sum += step.square(first + i * stride);
      return static_cast<float>(step.keep * static_cast<double>(before) +
                                (1 - step.keep) * sum / static_cast<double>(count));
    };
    double sum_of_rows = 0;
    for (int64_t i = 0; i < rows; ++i) {
      by_row[i] = averaged(args.inputs[2].template as<float>()[i], i * columns, columns, 1);
      sum_of_rows += static_cast<double>(by_row[i]);
    }
    for (int64_t j = 0; j < columns; ++j) {
      by_column[j] = averaged(args.inputs[3].template as<float>()[j], j, rows, columns);
    }
    const double mean = sum_of_rows / static_cast<double>(rows);
    step.move([&](int64_t i) {
      return std::sqrt(static_cast<double>(by_row[i / columns]) / mean *
                       static_cast<double>(by_column[i % columns]));
    });
  });
}

Work work(const Signature& s) { return {25 * static_cast<double>(s.inputs[0].elements()), 0}; }

std::vector<Sample> samples() {
  std::vector<Sample> result;
  const auto add = [&](Shape w, int64_t columns, double step, Attrs attrs) {
    const Fill positive = {Fill::Kind::uniform, 0.1, 1};
    result.push_back({.inputs = {{w}, {w}, {{w[0]}}, {{columns}}, {{1}}, {{1}}},
                      .attrs = std::move(attrs),
                      .fills = {{},
                                {},
                                positive,
                                positive,
                                {Fill::Kind::uniform, 0.001, 0.01},
                                {Fill::Kind::uniform, step, step}}});
  };
  add({5, 7}, 7, 1, {});
  add({16, 3, 3, 8}, 72, 1000, {{"weight_decay", 0.1}, {"clip", 0.5}});
  Sample mixed = result.back();
  mixed.inputs[1].dtype = DType::f16;
  result.push_back(with_extras(std::move(mixed)));
  return result;
}

}  // namespace

extern const OpDef op_adafactor_update;
const OpDef op_adafactor_update{
    .name = "adafactor_update",
    .summary = "one step of Adafactor, second moments factored into rows and columns",
    .infer = infer,
    .reference = reference,
    .work = work,
    .samples = samples,
    .recompute = Recompute::never,
    .updates = {{0, 0}, {1, 2}, {2, 3}},
};

}  // namespace thimble
