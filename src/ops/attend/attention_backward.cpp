// attention_backward(q, k, v, y, lse, dy [, lengths] [, begins] [, rng]) -> (dq, dk, dv); attrs of attention.
// Packed, q, k and v are one tensor, and so are their gradients. The probabilities are recomputed
// from q, k and lse:
//   p = exp(scale * q k^T - lse)   dp = kept * dy v^T   ds = p * (dp - dy . y)
//   dv = (kept * p)^T dy           dq = scale * ds k    dk = scale * ds^T q
#include "ops/attend/attention_scores.h"

namespace thimble {
namespace {

AttentionGeometry geometry_of(std::span<const TensorType> inputs, const Attrs& attrs) {
  const size_t sources = attrs.integer("packed", 0) != 0 ? 1 : 3;
  if (inputs.size() < sources + 3) check_inputs("attention_backward", inputs, sources + 3);
  user_check(attrs.integer("continued", 0) == 0, "[attention_backward] a KV cache has no gradient");
  return attention_geometry("attention_backward", inputs, attrs);
}

std::vector<TensorType> infer(std::span<const TensorType> inputs, const Attrs& attrs) {
  const AttentionGeometry g = geometry_of(inputs, attrs);
  const auto rest = inputs.subspan(g.sources());
  const DType dtype = inputs[0].dtype;
  check_type("attention_backward", "result", rest[0], g.result(dtype));
  check_type("attention_backward", "lse", rest[1], g.lse(dtype));
  check_type("attention_backward", "gradient", rest[2], g.result(dtype));
  check_attention_extras("attention_backward", rest.subspan(3), g);
  return {inputs.begin(), inputs.begin() + static_cast<int64_t>(g.sources())};
}

template <class T>
class Gradients {
 public:
  Gradients(const AttentionGeometry& g, const KernelArgs& args)
      : g_(g),
        scores_(g, args, args.inputs.subspan(g.sources() + 3)),
        y_(args.inputs[g.sources()].as<T>()),
        lse_(args.inputs[g.sources() + 1].as<Accumulator<T>>()),
        dy_(args.inputs[g.sources() + 2].as<T>()),
        d_(g, args.outputs),
        room_(reinterpret_cast<double*>(args.workspace)) {}

  void of_query(int64_t n, int64_t head, int64_t i) {
    const int64_t first = scores_.first(n, i), visible = scores_.visible(n, i);
    for (int64_t j = first; j < visible; ++j) room_[j] = score_gradient(n, head, i, j);
    for (int64_t d = 0; d < g_.size; ++d) {
      double sum = 0;
      for (int64_t j = first; j < visible; ++j) {
        sum += room_[j] * static_cast<double>(scores_.parts.k[g_.key_at(n, j, head) + d]);
      }
      store(d_.q, g_.query_at(n, i, head) + d, static_cast<Accumulator<T>>(g_.scale * sum));
    }
  }

  // Of key head `group`, which several query heads read.
  void of_key(int64_t n, int64_t group, int64_t j) {
    const int64_t shared = g_.heads / g_.groups;
    double* const dropped = room_ + shared * g_.queries;
    const auto for_each_reader = [&](auto&& body) {
      for (int64_t r = 0; r < shared * g_.queries; ++r) {
        const int64_t i = r % g_.queries;
        if (j >= scores_.first(n, i) && j < scores_.visible(n, i))
          body(r, group * shared + r / g_.queries, i);
      }
    };
    for_each_reader([&](int64_t r, int64_t head, int64_t i) {
      room_[r] = score_gradient(n, head, i, j);
      dropped[r] = probability(n, head, i, j) * scores_.kept(n, head, i, j);
    });
    const int64_t at = g_.key_at(n, j, group * shared);
    for (int64_t d = 0; d < g_.size; ++d) {
      double dk = 0, dv = 0;
      for_each_reader([&](int64_t r, int64_t head, int64_t i) {
        dk += room_[r] * static_cast<double>(scores_.parts.q[g_.query_at(n, i, head) + d]);
        dv += dropped[r] * static_cast<double>(dy_[g_.result_at(n, i, head) + d]);
      });
      store(d_.k, at + d, static_cast<Accumulator<T>>(g_.scale * dk));
      store(d_.v, at + d, static_cast<Accumulator<T>>(dv));
    }
  }

 private:
  double probability(int64_t n, int64_t head, int64_t i, int64_t j) const {
    return std::exp(scores_.score(n, head, i, j) -
                    static_cast<double>(lse_[g_.lse_at(n, i, head)]));
  }
  double score_gradient(int64_t n, int64_t head, int64_t i, int64_t j) const {
    const T* dy = dy_ + g_.result_at(n, i, head);
    const double dp =
        scores_.kept(n, head, i, j) * scores_.dot(dy, scores_.parts.v + g_.key_at(n, j, head));
    return probability(n, head, i, j) * (dp - scores_.dot(dy, y_ + g_.result_at(n, i, head)));
  }

  const AttentionGeometry g_;
  const AttentionScores<T> scores_;
  const T* const y_;
  const Accumulator<T>* const lse_;
  const T* const dy_;
  const AttentionParts<T> d_;
  double* const room_;
};

void reference(const KernelArgs& args) {
  std::array<TensorType, 6> types;
  for (size_t i = 0; i < args.inputs.size() && i < 6; ++i) types[i] = args.inputs[i].type;
  const AttentionGeometry g = geometry_of(types, *args.attrs);
  with_float_type(args.inputs[0].type.dtype, [&]<class T>(TypeTag<T>) {
    Gradients<T> gradients(g, args);
    for (int64_t n = 0; n < g.rows; ++n) {
      for (int64_t head = 0; head < g.heads; ++head) {
        for (int64_t i = 0; i < g.queries; ++i) gradients.of_query(n, head, i);
      }
      for (int64_t group = 0; group < g.groups; ++group) {
        for (int64_t j = 0; j < g.keys; ++j) gradients.of_key(n, group, j);
      }
    }
  });
}

Bytes reference_workspace(const Signature& s) {
  const AttentionGeometry g = geometry_of(s.inputs, s.attrs);
  const int64_t readers = g.heads / g.groups * g.queries;
  return Bytes(std::max(g.keys, 2 * readers) * static_cast<int64_t>(sizeof(double)));
}

Work work(const Signature& s) { return {5 * geometry_of(s.inputs, s.attrs).flops(), 0}; }

std::vector<Sample> samples() {
  std::vector<Sample> result;
  for (const AttentionCase& c : kAttentionCases) {
    const AttentionGeometry g = attention_geometry("attention", c.sources(), c.attrs());
    Sample sample = {.inputs = c.sources(), .attrs = c.attrs()};
    const TensorType y = g.result(DType::f32);
    sample.inputs.insert(sample.inputs.end(), {y, g.lse(DType::f32), y});
    c.add_extras(sample);
    // Above any score, as the log-sum-exp of several is: so no probability is above one.
    sample.fills[g.sources() + 1] = {Fill::Kind::uniform, 4, 6};
    for (size_t i = 0; i < g.sources(); ++i) sample.fills[i] = {Fill::Kind::uniform, -1, 1};
    result.push_back(std::move(sample));
  }
  return result;
}

// The inputs of the scores, q and k, go through an exponential.
Reading reading(const Attrs& attrs, size_t input) {
  const size_t sources = attrs.integer("packed", 0) != 0 ? 1 : 3;
  if (input == sources + 1) return Reading::exact;
  return input < std::min<size_t>(sources, 2) ? Reading::curved : Reading::linear;
}

}  // namespace

extern const OpDef op_attention_backward{
    .name = "attention_backward",
    .summary = "gradient of attention, from its result and the log-sum-exp of its scores",
    .infer = infer,
    .reference = reference,
    .reference_workspace = reference_workspace,
    .work = work,
    .samples = samples,
    .recompute = Recompute::costly,
    .reading = reading,
};

}  // namespace thimble
