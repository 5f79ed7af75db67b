// adafactor_update(w [R, ...], g, rows f32 [R], columns f32 [C], lr f32 [1], number f32 [1], ...)
//   -> (w, rows, columns); C: elements of a row
// adafactor_update(w [n], g, v f32 [n], lr f32 [1], number f32 [1], ...) -> (w, v)
// attrs epsilon (1e-30), clip (1), weight_decay (0, decoupled); see ops/update/update_layout.h for
// what may follow. One step of Adafactor (Shazeer and Stern 2018):
//   beta = 1 - number^-0.8;  second moments are means of g^2 + epsilon under it
//   u = g / sqrt(second moment);  w' = w - lr weight_decay w - lr u / max(1, rms(u) / clip)
// The second moment of element (i, j) is rows_i columns_j / mean(rows), so that R + C numbers stand
// for R C. Vectors have nothing to factor: a second moment per element.
#include <algorithm>
#include <cmath>

#include "ops/update/update.h"

namespace thimble {
namespace {

constexpr std::string_view kName = "adafactor_update";

bool is_factored(const TensorType& weight) { return weight.shape.rank() >= 2; }
// Inputs in front of lr.
size_t tensors_of(const TensorType& weight) { return is_factored(weight) ? 4 : 3; }

std::vector<TensorType> infer(std::span<const TensorType> inputs, const Attrs& attrs) {
  user_check(!inputs.empty(), "[{}] takes 5 inputs or more, got 0", kName);
  const TensorType& w = inputs[0];
  const size_t tensors = tensors_of(w);
  check_extras(kName, inputs, tensors + 2, attrs);
  check_like_weight(kName, inputs, 2);
  check_scalars(kName, inputs, tensors, tensors + 2);
  if (!is_factored(w)) {
    check_type(kName, "second moment", inputs[2], {w.shape, DType::f32});
    return {w, inputs[2]};
  }
  user_check(w.elements() > 0, "[{}] wants a weight with elements, got {}", kName, to_string(w));
  check_type(kName, "rows", inputs[2], {{w.shape[0]}, DType::f32});
  check_type(kName, "columns", inputs[3], {{w.elements() / w.shape[0]}, DType::f32});
  return {w, inputs[2], inputs[3]};
}

// A weight with the scalars of one step. `root(i)` is the square root of element i's second moment.
template <class Real>
struct AdafactorStep {
  const UpdateElements<Real>& values;
  int64_t elements;
  double rate, keep, epsilon, clip, decay;

  AdafactorStep(const UpdateElements<Real>& update, const KernelArgs& args, int lr)
      : values(update),
        elements(args.inputs[0].elements()),
        rate(update.scalar(lr)),
        keep(1 - std::pow(update.scalar(lr + 1), -0.8)),
        epsilon(args.attrs->real("epsilon", 1e-30)),
        clip(args.attrs->real("clip", 1)),
        decay(args.attrs->real("weight_decay", 0)) {}

  double gradient(int64_t i) const { return static_cast<double>(values.gradient(i)); }
  double square(int64_t i) const { return gradient(i) * gradient(i) + epsilon; }

  template <class Root>
  void move(const Root& root) const {
    double squares = 0;
    for (int64_t i = 0; i < elements; ++i) {
      const double u = gradient(i) / root(i);
      squares += u * u;
    }
    const double rms = std::sqrt(squares / static_cast<double>(elements));
    const double length = rate / std::max(1.0, rms / clip);
    for (int64_t i = 0; i < elements; ++i) {
      const double w = static_cast<double>(values.read(0, i));
      values.write(0, i,
                   static_cast<Real>((1 - rate * decay) * w - length * gradient(i) / root(i)));
    }
  }
};

template <class Real>
void move_factored(const KernelArgs& args, const AdafactorStep<Real>& step) {
  const int64_t rows = args.outputs[1].elements(), columns = args.outputs[2].elements();
  float* by_row = args.outputs[1].as<float>();
  float* by_column = args.outputs[2].as<float>();
  // The new value of a row or a column: `count` elements from `first` on, `stride` apart.
  const auto averaged = [&](float before, int64_t first, int64_t count, int64_t stride) {
    double sum = 0;
    for (int64_t i = 0; i < count; ++i) sum += step.square(first + i * stride);
    return static_cast<float>(step.keep * static_cast<double>(before) +
                              (1 - step.keep) * sum / static_cast<double>(count));
  };
  double sum_of_rows = 0;
  for (int64_t i = 0; i < rows; ++i) {
    by_row[i] = averaged(args.inputs[2].as<float>()[i], i * columns, columns, 1);
    sum_of_rows += static_cast<double>(by_row[i]);
  }
  for (int64_t j = 0; j < columns; ++j) {
    by_column[j] = averaged(args.inputs[3].as<float>()[j], j, rows, columns);
  }
  const double mean = sum_of_rows / static_cast<double>(rows);
  step.move([&](int64_t i) {
    return std::sqrt(static_cast<double>(by_row[i / columns]) / mean *
                     static_cast<double>(by_column[i % columns]));
  });
}

template <class Real>
void move_vector(const KernelArgs& args, const AdafactorStep<Real>& step) {
  float* v = args.outputs[1].as<float>();
  for (int64_t i = 0; i < step.elements; ++i) {
    const double before = static_cast<double>(args.inputs[2].as<float>()[i]);
    v[i] = static_cast<float>(step.keep * before + (1 - step.keep) * step.square(i));
  }
  step.move([&](int64_t i) { return std::sqrt(static_cast<double>(v[i])); });
}

void reference(const KernelArgs& args) {
  const TensorType& w = args.inputs[0].type;
  const size_t tensors = tensors_of(w);
  run_update(args, tensors + 2, [&](const auto& elements) {
    const AdafactorStep step(elements, args, static_cast<int>(tensors));
    if (is_factored(w)) {
      move_factored(args, step);
    } else {
      move_vector(args, step);
    }
  });
}

Work work(const Signature& s) {
  return {(is_factored(s.inputs[0]) ? 25 : 20) * static_cast<double>(s.inputs[0].elements()), 0};
}

std::vector<Sample> samples() {
  std::vector<Sample> result;
  const auto add = [&](Shape w, std::vector<Shape> moments, double number, Attrs attrs) {
    const Fill positive = {Fill::Kind::uniform, 0.1, 1};
    Sample sample = {.inputs = {{w}, {w}}, .attrs = std::move(attrs), .fills = {{}, {}}};
    for (const Shape& moment : moments) {
      sample.inputs.push_back({moment});
      sample.fills.push_back(positive);
    }
    for (const Fill& scalar :
         {Fill{Fill::Kind::uniform, 0.001, 0.01}, Fill{Fill::Kind::uniform, number, number}}) {
      sample.inputs.push_back({{1}});
      sample.fills.push_back(scalar);
    }
    result.push_back(sample);
    sample.inputs[1].dtype = DType::f16;
    result.push_back(with_extras(std::move(sample)));
  };
  add({5, 7}, {{5}, {7}}, 1, {});
  add({16, 3, 3, 8}, {{16}, {72}}, 1000, {{"weight_decay", 0.1}, {"clip", 0.5}});
  add({37}, {{37}}, 1, {});
  add({64}, {{64}}, 10, {{"weight_decay", 0.1}});
  return result;
}

}  // namespace

extern const OpDef op_adafactor_update{
    .name = kName,
    .summary = "one step of Adafactor, second moments factored into rows and columns",
    .infer = infer,
    .reference = reference,
    .work = work,
    .samples = samples,
    .recompute = Recompute::never,
    .updates = {{0, 0}, {1, 2}, {2, 3}},
};

}  // namespace thimble
