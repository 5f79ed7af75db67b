// softmax_cross_entropy: rows on all threads, each row's loss kept apart and added up in order.
#include <cmath>

#include "backend/cpu/cpu_kernel.h"
#include "backend/cpu/reduce/softmax_rows.h"

namespace thimble {
namespace {

struct Settings {
  int64_t columns, ignored;
  double smoothing;
};

THIMBLE_FOR_EACH_ISA void loop(const KernelArgs& args, const Settings& s, int64_t begin,
                               int64_t end, float* room, double* losses) {
  for (int64_t r = begin; r < end; ++r) {
    const float* x = as_f32(args.inputs[0], r * s.columns, s.columns, room);
    const int64_t label = args.inputs[1].as<const int32_t>()[r];
    const float largest = row_maximum(x, s.columns);
    const double sum = row_sum(s.columns, [=](int64_t c) { return vector_exp(x[c] - largest); });
    const double lse = static_cast<double>(largest) + std::log(sum);
    args.outputs[1].as<float>()[r] = static_cast<float>(lse);
    losses[r] = 0;
    if (label == s.ignored || label < 0 || label >= s.columns) continue;
    // Without smoothing, logits of other classes may be -inf.
    double expected = (1 - s.smoothing) * static_cast<double>(x[label]);
    if (s.smoothing > 0) {
      expected += s.smoothing / static_cast<double>(s.columns) *
                  row_sum(s.columns, [=](int64_t c) { return x[c]; });
    }
    losses[r] = lse - expected;
  }
}

class SoftmaxCrossEntropy final : public Kernel {
 public:
  explicit SoftmaxCrossEntropy(const Signature& s)
      : settings_{s.inputs[0].shape[1], s.attrs.integer("ignore_index", -1),
                  s.attrs.real("label_smoothing", 0)},
        rows_(s.inputs[0].shape[0]),
        parts_(rows_, settings_.columns * 8) {
    name = "own";
    const int64_t room = s.inputs[0].dtype == DType::f32 ? 0 : settings_.columns;
    workspace = Bytes(rows_ * static_cast<int64_t>(sizeof(double)) +
                      parts_.count() * room * static_cast<int64_t>(sizeof(float)));
  }

  void run(const KernelArgs& args) override {
    auto* losses = reinterpret_cast<double*>(args.workspace);
    auto* rooms = reinterpret_cast<float*>(losses + rows_);
    parts_.run([&](int part, int64_t begin, int64_t end) {
      loop(args, settings_, begin, end, rooms + part * settings_.columns, losses);
    });
    double loss = 0;
    for (int64_t r = 0; r < rows_; ++r) loss += losses[r];
    const auto normalizer = static_cast<double>(*args.inputs[2].as<const float>());
    float* to = args.outputs[0].as<float>();
    *to = (args.adds_into(0) ? *to : 0) + static_cast<float>(normalizer * loss);
  }

 private:
  const Settings settings_;
  const int64_t rows_;
  const Parts parts_;
};

}  // namespace

extern const CpuKernel cpu_softmax_cross_entropy{"softmax_cross_entropy",
                                                 make_where<SoftmaxCrossEntropy, stageable_input>};

}  // namespace thimble
