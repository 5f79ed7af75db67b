#include "ops/convolve/time_conv.h"

#include <algorithm>
#include <cmath>

#include "graph/builder.h"
#include "ops/checks.h"
#include "ops/pointwise/dropout_mask.h"
#include "ops/reading.h"
#include "ops/reference.h"

namespace thimble {
namespace {

// The taps of one kernel, softmaxed; `masked` after DropConnect.
template <class T>
struct Taps {
  using Real = Accumulator<T>;

  static void softmax(const TimeConv& conv, const T* w, Real* p) {
    double largest = static_cast<double>(w[0]), sum = 0;
    for (int64_t k = 1; k < conv.kernel; ++k)
      largest = std::max(largest, static_cast<double>(w[k]));
    for (int64_t k = 0; k < conv.kernel; ++k) sum += std::exp(static_cast<double>(w[k]) - largest);
    for (int64_t k = 0; k < conv.kernel; ++k)
      p[k] = static_cast<Real>(std::exp(static_cast<double>(w[k]) - largest) / sum);
  }

  // The factor of DropConnect on tap `at` of w.
  static Real factor(const TimeConv& conv, const TimeConvExtras& extras, int64_t at) {
    if (extras.rng == nullptr) return 1;
    const DropoutMask mask(extras.rng, conv.stream, conv.dropout);
    const bool kept = mask.keeps(mask.words(at / 4)[static_cast<size_t>(at % 4)]);
    return kept ? static_cast<Real>(1 / (1 - conv.dropout)) : 0;
  }
};

TensorType reals(const Signature& s, int64_t count) {
  return {{count}, statistics_dtype(s.inputs[0].dtype)};
}

TimeConv conv_of(const KernelArgs& args, bool shared) {
  return {args.inputs[0].type.shape, shared, *args.attrs};
}

// Checks x and w, and what is behind the first `first` inputs.
TimeConv check_time_conv(std::string_view op, std::span<const TensorType> inputs, size_t first,
                         bool shared, const Attrs& attrs) {
  const size_t extras =
      (attrs.integer("padded", 0) != 0 ? 1u : 0u) + (attrs.real("dropout", 0) > 0 ? 1u : 0u);
  check_inputs(op, inputs, first + extras);
  check_floating_rank(op, "x [N,T,C]", inputs[0], 3);
  const TimeConv conv(inputs[0].shape, shared, attrs);
  user_check(conv.kernel >= 1 && conv.heads >= 1 && conv.channels % conv.heads == 0,
             "[{}] wants a kernel of 1 or more and heads that divide the channels, got {} and {} "
             "for {}",
             op, conv.kernel, conv.heads, to_string(inputs[0]));
  user_check(conv.dropout >= 0 && conv.dropout < 1, "[{}] dropout lies in [0, 1), got {}", op,
             conv.dropout);
  check_type(op, "kernels", inputs[1], {conv.kernels(), inputs[0].dtype});
  user_check(inputs[1].elements() <= kMaxRandomElements, "[{}] {} has too many elements", op,
             to_string(inputs[1]));
  if (conv.padded) check_type(op, "lengths", inputs[first], {{conv.batch}, DType::i32});
  if (conv.dropout > 0) check_type(op, "rng", inputs.back(), {{3}, DType::i64});
  return conv;
}

struct Case {
  Shape x;
  int64_t heads, kernel, causal, padded;
  double dropout;
};

std::vector<Sample> samples_of(bool shared) {
  const std::vector<Case> cases = {{{2, 5, 6}, 2, 3, 0, 0, 0},   {{3, 7, 8}, 4, 5, 1, 1, 0},
                                   {{2, 4, 4}, 1, 7, 1, 0, 0.3}, {{2, 9, 32}, 2, 4, 0, 1, 0.1},
                                   {{1, 6, 3}, 3, 1, 0, 0, 0.2}, {{2, 40, 64}, 4, 31, 0, 1, 0}};
  std::vector<Sample> result;
  for (const Case& c : cases) {
    const Attrs attrs = {{"heads", c.heads},   {"kernel", c.kernel},   {"causal", c.causal},
                         {"padded", c.padded}, {"dropout", c.dropout}, {"stream", int64_t{5}}};
    const TimeConv conv(c.x, shared, attrs);
    Sample sample{.inputs = {{c.x}, {conv.kernels()}},
                  .attrs = attrs,
                  .fills = {{}, {}},
                  .differentiate = {0, 1}};
    if (conv.padded) {
      sample.inputs.push_back({{conv.batch}, DType::i32});
      sample.fills.push_back({Fill::Kind::labels, 1, static_cast<double>(conv.steps + 1)});
    }
    if (conv.dropout > 0) {
      sample.inputs.push_back({{3}, DType::i64});
      sample.fills.push_back({Fill::Kind::labels, 0, 1000});
    }
    result.push_back(std::move(sample));
  }
  return result;
}

template <bool kShared>
struct TimeConvOp {
  static constexpr std::string_view kName = kShared ? "light_conv" : "dynamic_conv";
  static std::vector<TensorType> infer(std::span<const TensorType> inputs, const Attrs& attrs);
  static void gradient(GradientBuilder& g);
  static void reference(const KernelArgs& args);
  static Bytes reference_workspace(const Signature& signature);
  static Work work(const Signature& signature);
  static std::vector<Sample> samples() { return samples_of(kShared); }
};

template <bool kShared>
struct TimeConvBackwardOp {
  static constexpr std::string_view kName =
      kShared ? "light_conv_backward" : "dynamic_conv_backward";
  static std::vector<TensorType> infer(std::span<const TensorType> inputs, const Attrs& attrs);
  static void reference(const KernelArgs& args);
  static Bytes reference_workspace(const Signature& signature);
  static Work work(const Signature& signature);
  static std::vector<Sample> samples();
};

template <bool kShared>
std::vector<TensorType> TimeConvOp<kShared>::infer(std::span<const TensorType> inputs,
                                                   const Attrs& attrs) {
  check_time_conv(kName, inputs, 2, kShared, attrs);
  return {inputs[0]};
}

template <bool kShared>
void TimeConvOp<kShared>::gradient(GradientBuilder& g) {
  if (!g.wants(0) && !g.wants(1)) return;
  std::vector<ValueId> inputs = {g.input(0), g.input(1), g.upstream()};
  for (size_t i = 2; i < g.node().inputs.size(); ++i) inputs.push_back(g.input(i));
  g.give_each(g.build().apply(TimeConvBackwardOp<kShared>::kName, std::move(inputs), g.attrs()));
}

template <bool kShared>
void TimeConvOp<kShared>::reference(const KernelArgs& args) {
  const TimeConv conv = conv_of(args, kShared);
  const TimeConvExtras extras(conv, args.inputs, 2);
  with_float_type(args.inputs[0].type.dtype, [&]<class T>(TypeTag<T>) {
    using Real = Accumulator<T>;
    const T* const x = args.inputs[0].as<T>();
    auto* const p = reinterpret_cast<Real*>(args.workspace);
    for (int64_t n = 0; n < conv.batch; ++n) {
      const int64_t length = extras.length(conv, n);
      for (int64_t t = 0; t < conv.steps; ++t) {
        for (int64_t c = 0; c < conv.channels; ++c) {
          const int64_t at = conv.kernel_at(n, t, c / conv.head_channels());
          if (c % conv.head_channels() == 0) {
            Taps<T>::softmax(conv, args.inputs[1].as<T>() + at, p);
            for (int64_t k = 0; k < conv.kernel; ++k) p[k] *= Taps<T>::factor(conv, extras, at + k);
          }
          Real sum = 0;
          for (int64_t k = 0; k < conv.kernel; ++k) {
            const int64_t from = t + k - conv.left;
            if (from < 0 || from >= length) continue;
            sum += p[k] * widen(x[(n * conv.steps + from) * conv.channels + c]);
          }
          store(args.outputs[0].as<T>(), (n * conv.steps + t) * conv.channels + c, sum);
        }
      }
    }
  });
}

// The taps of a kernel.
template <bool kShared>
Bytes TimeConvOp<kShared>::reference_workspace(const Signature& s) {
  return reals(s, s.attrs.integer("kernel")).bytes();
}

template <bool kShared>
Work TimeConvOp<kShared>::work(const Signature& s) {
  return {TimeConv(s.inputs[0].shape, kShared, s.attrs).flops(), 0};
}

template <bool kShared>
std::vector<TensorType> TimeConvBackwardOp<kShared>::infer(std::span<const TensorType> inputs,
                                                           const Attrs& attrs) {
  check_time_conv(kName, inputs, 3, kShared, attrs);
  check_type(kName, "gradient", inputs[2], inputs[0]);
  return {inputs[0], inputs[1]};
}

// Row by row: first its softmaxed kernels, then the gradients of their taps (of one kernel at each
// position, or of those that all positions share), then dx. For dx, every tap is visited from the
// position that it reads.
template <bool kShared>
void TimeConvBackwardOp<kShared>::reference(const KernelArgs& args) {
  const TimeConv conv = conv_of(args, kShared);
  const TimeConvExtras extras(conv, args.inputs, 3);
  with_float_type(args.inputs[0].type.dtype, [&]<class T>(TypeTag<T>) {
    using Real = Accumulator<T>;
    const T *const x = args.inputs[0].as<T>(), *const w = args.inputs[1].as<T>(),
                   *const dy = args.inputs[2].as<T>();
    const int64_t kernels = kShared ? conv.heads : conv.steps * conv.heads, K = conv.kernel;
    auto* const p = reinterpret_cast<Real*>(args.workspace);  // [kernels, K] of a row
    Real* const dp = p + kernels * K;                         // likewise
    const auto at = [&](int64_t n, int64_t t, int64_t c) {
      return (n * conv.steps + t) * conv.channels + c;
    };
    // The softmax's gradient, of all kernels in dp, which begin at tap `first` of w.
    const auto to_kernels = [&](int64_t first) {
      for (int64_t i = 0; i < kernels; ++i) {
        Real mean = 0;
        for (int64_t k = i * K; k < i * K + K; ++k) mean += p[k] * dp[k];
        for (int64_t k = i * K; k < i * K + K; ++k)
          store(args.outputs[1].as<T>(), first + k, p[k] * (dp[k] - mean), args.adds_into(1));
      }
    };
    for (int64_t n = 0; n < conv.batch; ++n) {
      const int64_t length = extras.length(conv, n), first = conv.kernel_at(n, 0, 0);
      if (!kShared || n == 0) {
        for (int64_t i = 0; i < kernels; ++i) Taps<T>::softmax(conv, w + first + i * K, p + i * K);
        std::fill_n(dp, kernels * K, Real{0});
      }
      for (int64_t t = 0; t < conv.steps; ++t) {
        for (int64_t c = 0; c < conv.channels; ++c) {
          const int64_t tap = conv.kernel_at(n, t, c / conv.head_channels());
          for (int64_t k = 0; k < K; ++k) {
            const int64_t from = t + k - conv.left;
            if (from < 0 || from >= length) continue;
            dp[tap - first + k] += Taps<T>::factor(conv, extras, tap + k) * widen(dy[at(n, t, c)]) *
                                   widen(x[at(n, from, c)]);
          }
        }
      }
      if (!kShared) to_kernels(first);
      for (int64_t s = 0; s < conv.steps; ++s) {
        for (int64_t c = 0; c < conv.channels; ++c) {
          Real sum = 0;
          for (int64_t k = 0; k < K && s < length; ++k) {
            const int64_t t = s - k + conv.left;
            if (t < 0 || t >= conv.steps) continue;
            const int64_t tap = conv.kernel_at(n, t, c / conv.head_channels()) + k;
            sum += p[tap - first] * Taps<T>::factor(conv, extras, tap) * widen(dy[at(n, t, c)]);
          }
          store(args.outputs[0].as<T>(), at(n, s, c), sum, args.adds_into(0));
        }
      }
    }
    if (kShared) to_kernels(0);
  });
}

template <bool kShared>
Bytes TimeConvBackwardOp<kShared>::reference_workspace(const Signature& s) {
  const TimeConv conv(s.inputs[0].shape, kShared, s.attrs);
  const int64_t kernels = kShared ? conv.heads : conv.steps * conv.heads;
  return reals(s, 2 * kernels * conv.kernel).bytes();
}

template <bool kShared>
Work TimeConvBackwardOp<kShared>::work(const Signature& s) {
  return {2 * TimeConv(s.inputs[0].shape, kShared, s.attrs).flops(), 0};
}

template <bool kShared>
std::vector<Sample> TimeConvBackwardOp<kShared>::samples() {
  std::vector<Sample> result = samples_of(kShared);
  for (Sample& sample : result) {
    sample.inputs.insert(sample.inputs.begin() + 2, sample.inputs[0]);
    sample.fills.insert(sample.fills.begin() + 2, Fill{});
    sample.differentiate.clear();
  }
  for (const uint32_t accumulate : {1u, 2u, 3u}) {
    result.push_back(result[accumulate]);
    result.back().accumulate = accumulate;
  }
  return result;
}

template <class Op>
OpDef record(std::string_view summary) {
  return {.name = Op::kName,
          .summary = summary,
          .infer = Op::infer,
          .reference = Op::reference,
          .reference_workspace = Op::reference_workspace,
          .work = Op::work,
          .samples = Op::samples};
}

template <bool kShared>
OpDef forward(std::string_view summary) {
  OpDef op = record<TimeConvOp<kShared>>(summary);
  op.gradient = TimeConvOp<kShared>::gradient;
  return op;
}

}  // namespace

OpDef time_conv_op(std::string_view summary, bool shared) {
  return shared ? forward<true>(summary) : forward<false>(summary);
}

OpDef time_conv_backward_op(std::string_view summary, bool shared) {
  OpDef op = shared ? record<TimeConvBackwardOp<true>>(summary)
                    : record<TimeConvBackwardOp<false>>(summary);
  op.reading = reads<Reading::curved, 1>;
  op.accumulates = 3;
  return op;
}

}  // namespace thimble
