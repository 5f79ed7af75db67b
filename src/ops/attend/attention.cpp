// attention(q [N,Tq,H*D], k, v [N,Tk,G*D] [, lengths i32 [N]] [, begins i32 [N,T]] [, rng i64 [3]])
//   -> (y like q, lse [N,H,Tq]); attrs of attention_geometry.h.
//   y = dropout(softmax(scale * q k^T)) v, per head, over the keys that a query sees
// lengths (padded = 1) say how many keys of a row are real, begins (documents = 1) where the
// document of each token begins. rng (dropout > 0) is that of dropout. continued = 1: lengths say where
// the queries of a row begin in a KV cache, which has no gradient.
// lse, the log-sum-exp of the scores, is saved for the gradient, which computes them again. A query
// that sees no key gets zeros, and -inf for its lse.
#include <array>
#include <limits>

#include "graph/builder.h"
#include "ops/attend/attention_scores.h"
#include "ops/row_rules.h"

namespace thimble {
namespace {

std::vector<TensorType> infer(std::span<const TensorType> inputs, const Attrs& attrs) {
  const size_t sources = attrs.integer("packed", 0) != 0 ? 1 : 3;
  if (inputs.size() < sources) check_inputs("attention", inputs, sources);
  const AttentionGeometry g = attention_geometry("attention", inputs, attrs);
  check_attention_extras("attention", inputs.subspan(sources), g);
  return {g.result(inputs[0].dtype), g.lse(inputs[0].dtype)};
}

// Reads q, k, v and two results, the smaller of which is enough to have the scores again.
void gradient(GradientBuilder& g) {
  if (!g.upstream().valid()) return;
  const size_t sources = g.attrs().integer("packed", 0) != 0 ? 1 : 3;
  std::vector<ValueId> reads(g.node().inputs.begin(), g.node().inputs.end());
  reads.insert(reads.begin() + static_cast<int64_t>(sources),
               {g.output(0), g.output(1), g.upstream()});
  g.give_each(g.build().apply("attention_backward", std::move(reads), g.attrs()));
}

template <class T>
void attend(const AttentionScores<T>& scores, int64_t n, int64_t head, int64_t i, double* room,
            T* y, Accumulator<T>* lse) {
  const AttentionGeometry& g = scores.g;
  const int64_t first = scores.first(n, i), visible = scores.visible(n, i);
  double largest = -std::numeric_limits<double>::infinity(), sum = 0;
  for (int64_t j = first; j < visible; ++j) {
    room[j] = scores.score(n, head, i, j);
    largest = std::max(largest, room[j]);
  }
  for (int64_t j = first; j < visible; ++j) {
    room[j] = std::exp(room[j] - largest);
    sum += room[j];
    room[j] *= scores.kept(n, head, i, j);
  }
  lse[g.lse_at(n, i, head)] =
      static_cast<Accumulator<T>>(visible == 0 ? largest : largest + std::log(sum));
  for (int64_t d = 0; d < g.size; ++d) {
    double result = 0;
    for (int64_t j = first; j < visible; ++j) {
      result += room[j] * static_cast<double>(scores.parts.v[g.key_at(n, j, head) + d]);
    }
    store(y, g.result_at(n, i, head) + d,
          static_cast<Accumulator<T>>(visible == 0 ? 0 : result / sum));
  }
}

void reference(const KernelArgs& args) {
  std::array<TensorType, 3> types;
  for (size_t i = 0; i < args.inputs.size() && i < 3; ++i) types[i] = args.inputs[i].type;
  const AttentionGeometry g = attention_geometry("attention", types, *args.attrs);
  with_float_type(args.inputs[0].type.dtype, [&]<class T>(TypeTag<T>) {
    const AttentionScores<T> scores(g, args, args.inputs.subspan(g.sources()));
    for (int64_t n = 0; n < g.rows; ++n) {
      for (int64_t head = 0; head < g.heads; ++head) {
        for (int64_t i = 0; i < g.queries; ++i) {
          attend(scores, n, head, i, reinterpret_cast<double*>(args.workspace),
                 args.outputs[0].as<T>(), args.outputs[1].as<Accumulator<T>>());
        }
      }
    }
  });
}

Bytes reference_workspace(const Signature& s) {
  const AttentionGeometry g = attention_geometry("attention", s.inputs, s.attrs);
  return Bytes(g.keys * static_cast<int64_t>(sizeof(double)));
}

Work work(const Signature& s) {
  return {2 * attention_geometry("attention", s.inputs, s.attrs).flops(), 0};
}

// y alone: the saved lse has no gradient.
template <size_t kCase>
ValueId attended(Builder& build, std::span<const ValueId> in) {
  return build.op("attention", {in.begin(), in.end()}, kAttentionCases[kCase].attrs());
}

template <size_t... kCases>
std::vector<Sample> samples_of(std::index_sequence<kCases...>) {
  std::vector<Sample> result;
  const auto add = [&](const AttentionCase& c, auto build) {
    Sample sample = {.inputs = c.sources(), .attrs = c.attrs(), .build = build};
    for (size_t i = 0; i < sample.inputs.size() && c.keys < 20; ++i) {
      sample.differentiate.push_back(static_cast<int>(i));
    }
    c.add_extras(sample);
    result.push_back(std::move(sample));
  };
  (add(kAttentionCases[kCases], attended<kCases>), ...);
  return result;
}

std::vector<Sample> samples() {
  std::vector<Sample> all = samples_of(std::make_index_sequence<std::size(kAttentionCases)>{});
  // Queries over a cache of `keys` positions, which begin anywhere in it, some at its end.
  const auto continued = [&](int64_t rows, int64_t queries, int64_t keys, int64_t heads,
                             int64_t groups, int64_t size) {
    const AttentionCase c = {rows, queries, keys, heads, groups, size, true, false, false, 0};
    Sample sample = {.inputs = c.sources(), .attrs = c.attrs()};
    sample.attrs.set("continued", int64_t{1});
    sample.fills.resize(sample.inputs.size());
    sample.inputs.push_back({{rows}, DType::i32});
    sample.fills.push_back({Fill::Kind::labels, 0, static_cast<double>(keys)});
    all.push_back(std::move(sample));
  };
  continued(2, 1, 7, 4, 2, 6);
  continued(3, 1, 150, 3, 1, 64);
  continued(2, 5, 9, 2, 2, 4);
  continued(2, 70, 200, 4, 2, 16);
  return all;
}

// Positions of a row see each other; lengths are a number of each row, begins one of each position.
RowFlow rows(const RowCall& call, size_t output) {
  const size_t sources = call.attrs.integer("packed", 0) != 0 ? 1 : 3;
  std::array<int, 5> axes = {2, 2, 2, -1, -1};
  if (sources == 1) axes = {2, -1, -1, -1, -1};
  const bool by_row =
      call.attrs.integer("padded", 0) != 0 || call.attrs.integer("continued", 0) != 0;
  if (by_row) axes[sources] = 0;
  if (call.attrs.integer("documents", 0) != 0) axes[sources] = 1;
  return rows_of_joint_slices(call, output, std::span(axes).first(call.inputs.size()));
}

}  // namespace

extern const OpDef op_attention{
    .name = "attention",
    .summary = "softmax attention, causal, padded or over another sequence",
    .infer = infer,
    .gradient = gradient,
    .reference = reference,
    .reference_workspace = reference_workspace,
    .work = work,
    .samples = samples,
    .rows = rows,
    .recompute = Recompute::costly,
};

}  // namespace thimble
