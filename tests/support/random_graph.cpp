#include "support/random_graph.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>

#include "base/error.h"
#include "graph/builder.h"
#include "support/interpreter.h"

namespace thimble {
namespace {

using List = std::vector<int64_t>;

List list(const Shape& shape) { return {shape.dims().begin(), shape.dims().end()}; }
TensorType doubles(const Shape& shape) { return {shape, DType::f64}; }

constexpr int64_t kMostElements = 400;  // of a value that others are made of
// Values stay within these by their largest element: above, products overflow; below, nothing of an error
// in them would show in the loss.
constexpr double kSmallest = 0.1, kLargest = 3, kNoise = 1e-3;

class Generator {
 public:
  explicit Generator(uint64_t seed) : b_(out_.graph), random_(seed) {
    out_.seed = seed;
    out_.graph.name = fmt::format("random {}", seed);
    const Shape homes[] = {{4, 6}, {3, 8}, {2, 3, 4}, {2, 2, 6}, {2, 2, 3, 2}};
    home_ = homes[below(std::size(homes))];
  }

  RandomGraph run() {
    for (int i = 0; i < 2; ++i) keep(weight(home_, {}));
    const size_t count = 4 + below(9);
    for (size_t i = 0; i < count; ++i) {
      if (below(5) < 3) {
        use(ingredient_of(random_()));
      } else {
        keep(move_at_home(home()));
      }
    }
    use(ingredient_of(out_.seed));  // none is left out, however many there are
    add_loss();
    add_other_roots();
    choose_middle();
    return std::move(out_);
  }

 private:
  // -- chance
  size_t below(size_t count) { return static_cast<size_t>(random_() % count); }
  bool one_in(size_t count) { return below(count) == 0; }
  template <class T>
  const T& any_of(const std::vector<T>& list) {
    return list[below(list.size())];
  }
  // Mostly one of the newest, so that graphs are deep.
  ValueId recent() {
    const size_t back = one_in(2) ? below(std::min<size_t>(3, pool_.size())) : below(pool_.size());
    return pool_[pool_.size() - 1 - back];
  }
  // Of one of the ops, each as often as another, however many samples it has.
  const Ingredient& ingredient_of(uint64_t number) {
    const auto all = ingredients();
    std::vector<size_t> firsts;
    for (size_t i = 0; i < all.size(); ++i) {
      if (i == 0 || all[i].op != all[i - 1].op) firsts.push_back(i);
    }
    const size_t op = static_cast<size_t>(number % firsts.size());
    const size_t end = op + 1 < firsts.size() ? firsts[op + 1] : all.size();
    return all[firsts[op] + below(end - firsts[op])];
  }

  // -- leaves
  ValueId weight(const Shape& shape, const Fill& fill) {
    const ValueId made = b_.weight(fmt::format("w{}", out_.weights.size()), doubles(shape), {});
    out_.weights.push_back(made);
    out_.fills[made] = fill;
    return made;
  }
  ValueId input(const TensorType& type, const Fill& fill) {
    const ValueId made = b_.input(fmt::format("in{}", out_.graph.values.size()), type);
    out_.fills[made] = fill;
    return made;
  }

  // -- shapes
  ValueId reshaped(ValueId v, const Shape& shape) {
    return b_.shape(v) == shape ? v : b_.op("reshape", {v}, {{"shape", list(shape)}});
  }
  ValueId flat(ValueId v) { return reshaped(v, {b_.type(v).elements()}); }
  ValueId slice(ValueId v, int64_t axis, int64_t begin, int64_t end) {
    return b_.op("slice", {v}, {{"axis", axis}, {"begin", begin}, {"end", end}});
  }
  // A value of that shape that depends on v.
  ValueId resized(ValueId v, const Shape& shape) {
    const int64_t has = b_.type(v).elements(), wants = shape.elements();
    if (has > wants && has % wants == 0 && one_in(2)) {
      const ValueId rows = reshaped(v, {has / wants, wants});
      v = b_.op("reduce", {rows}, {{"axes", List{0}}});
    } else if (has > wants) {
      const auto begin = static_cast<int64_t>(below(static_cast<size_t>(has - wants + 1)));
      v = slice(flat(v), 0, begin, begin + wants);
    } else if (has < wants && wants % has == 0 && one_in(2)) {
      v = b_.op("broadcast_to", {flat(v)}, {{"shape", List{wants / has, has}}});
    } else if (has < wants) {
      std::vector<ValueId> parts;
      for (int64_t total = 0; total < wants; total += b_.type(parts.back()).elements()) {
        parts.push_back(flat(parts.empty() || one_in(2) ? v : any_of(pool_)));
      }
      v = slice(b_.op("concat", std::move(parts), {{"axis", int64_t{0}}}), 0, 0, wants);
    }
    return reshaped(v, shape);
  }
  // Some value of the pool in that shape; often one that has it.
  ValueId in_shape(const Shape& shape) {
    std::vector<ValueId> same;
    for (const ValueId v : pool_) {
      if (b_.shape(v) == shape) same.push_back(v);
    }
    return !same.empty() && !one_in(4) ? any_of(same) : resized(recent(), shape);
  }
  // Some through a view, whose gradient is a view of another's.
  ValueId home() {
    const ValueId v = in_shape(home_);
    return one_in(4) ? reshaped(flat(v), home_) : v;
  }

  // -- ops by their samples
  ValueId supply(const TensorType& type, const Fill& fill) {
    const bool ranged = fill.kind != Fill::Kind::normal || fill.low != 0 || fill.high != 0;
    if (one_in(ranged ? 2 : 5)) return weight(type.shape, fill);
    const ValueId v = in_shape(type.shape);
    if (!ranged) return v;
    if (fill.kind != Fill::Kind::uniform) return weight(type.shape, fill);
    const ValueId share = b_.op("sigmoid", {v});
    const ValueId scaled = b_.op("scale", {share}, {{"factor", fill.high - fill.low}});
    return b_.op("add", {scaled, b_.constant(fill.low, doubles({1}))});
  }

  void use(const Ingredient& what) {
    const Sample& sample = what.sample;
    std::vector<ValueId> inputs;
    for (size_t i = 0; i < sample.inputs.size(); ++i) {
      const Fill fill = i < sample.fills.size() ? sample.fills[i] : Fill{};
      const bool differentiated = std::ranges::count(sample.differentiate, static_cast<int>(i)) > 0;
      inputs.push_back(differentiated && !one_in(10) ? supply(sample.inputs[i], fill)
                                                     : input(sample.inputs[i], fill));
    }
    const size_t before = out_.graph.nodes.size();
    const std::vector<ValueId> made = sample.build != nullptr
                                          ? std::vector{sample.build(b_, inputs)}
                                          : b_.apply(what.op->name, inputs, sample.attrs);
    for (const size_t k : what.results) {
      const bool scalar = b_.type(made[k]) == doubles({1});
      if (scalar && !one_in(4)) {
        run_new_nodes();
        losses_.push_back(made[k]);
      } else {
        keep(made[k]);
      }
    }
    collect_metrics(before);
  }

  // Numbers that nodes report beside what is differentiated.
  void collect_metrics(size_t first_node) {
    for (size_t n = first_node; n < out_.graph.nodes.size(); ++n) {
      for (size_t k = 1; k < out_.graph.nodes[n].outputs.size(); ++k) {
        const ValueId v = out_.graph.nodes[n].outputs[k];
        if (b_.type(v) == doubles({1})) metrics_.push_back(v);
      }
    }
  }

  // -- shapes of graphs in which sums meet
  ValueId bent(ValueId x) {
    const char* const ops[] = {"tanh", "sigmoid", "silu", "gelu", "relu"};
    const ValueId y = b_.op(ops[below(std::size(ops))], {x});
    return one_in(3) ? b_.op("scale", {y}, {{"factor", -1.5}}) : y;
  }
  ValueId either_way(std::string_view op, ValueId x, ValueId y, Attrs attrs = {}) {
    if (one_in(2)) std::swap(x, y);
    return b_.op(op, {x, y}, std::move(attrs));
  }
  // Any axis, and back to x's shape: some rows of each.
  ValueId joined(ValueId x, ValueId y) {
    const auto axis = static_cast<int64_t>(below(static_cast<size_t>(home_.rank())));
    const ValueId all = either_way("concat", x, y, {{"axis", axis}});
    if (one_in(2)) return all;
    const int64_t extent = home_[static_cast<int>(axis)], begin = extent > 1 ? extent / 2 : 0;
    return slice(all, axis, begin, begin + extent);
  }

  ValueId move_at_home(ValueId x) {
    switch (below(14)) {
      case 0:
        return b_.op("add", {x, home()});
      case 1:
        return b_.op("sub", {x, home()});
      case 2:
        return b_.op("mul", {x, one_in(3) ? x : home()});
      case 3:
        return b_.op("add", {x, x});
      case 4:  // a residual
        return either_way("add", x, bent(one_in(2) ? bent(x) : x));
      case 5:
        return joined(x, bent(either_way("add", x, home())));
      case 6: {
        const ValueId sum = either_way("add", x, home());
        keep(sum);
        return one_in(2) ? either_way("add", sum, bent(x)) : joined(sum, bent(sum));
      }
      case 7: {  // overlapping pieces
        const int64_t rows = home_[0];
        const ValueId first = slice(x, 0, 0, rows - 1), last = slice(x, 0, 1, rows);
        return either_way("concat", one_in(2) ? bent(first) : first, last, {{"axis", int64_t{0}}});
      }
      case 8: {  // views of views
        const ValueId view = reshaped(flat(x), {2, b_.type(x).elements() / 2});
        keep(view);
        return reshaped(one_in(2) ? view : bent(view), home_);
      }
      case 9: {
        List turn(static_cast<size_t>(home_.rank()));
        std::iota(turn.begin(), turn.end(), 0);
        std::swap(turn.front(), turn.back());
        const ValueId turned = b_.op("transpose", {x}, {{"perm", turn}});
        return b_.op("transpose", {one_in(2) ? turned : bent(turned)}, {{"perm", turn}});
      }
      case 10: {  // a weight that several products share
        const int64_t width = home_.back();
        if (!square_.valid()) square_ = weight({width, width}, {});
        return b_.op("matmul", {x, square_},
                     {{"transpose_a", int64_t{0}}, {"transpose_b", int64_t(below(2))}});
      }
      case 11: {  // its mean or a bias, broadcast
        if (one_in(2)) return b_.op("add", {x, in_shape({home_.back()})});
        const ValueId mean =
            b_.op("reduce", {x},
                  {{"axes", List{0}}, {"kind", std::string("mean")}, {"keep_dims", int64_t{1}}});
        return b_.op(one_in(2) ? "sub" : "mul", {x, mean});
      }
      case 12: {  // a gradient that is seen through a view while a sum could grow in its bytes
        const ValueId other = home();
        keep(bent(x));
        return bent(either_way("add", reshaped(flat(other), home_), x));
      }
      default:
        return b_.op("add", {b_.op("detach", {home()}), x});
    }
  }

  // -- the pool
  void run_new_nodes() {
    Graph& graph = out_.graph;
    while (contents_.size() < graph.values.size()) {
      const ValueId v = make_id<ValueId>(contents_.size());
      contents_.push_back(graph[v].producer.valid() ? Tensor(graph[v].type) : leaf(out_, v, 0));
    }
    for (; run_ < graph.nodes.size(); ++run_) {
      run_node(graph, make_id<NodeId>(run_), contents_);
    }
  }

  // Makes v, or a multiple of it that is neither huge nor tiny, part of what others are made of.
  void keep(ValueId v) {
    run_new_nodes();
    const Tensor& content = contents_[v.at()];
    const double largest = content.largest();
    if (!std::isfinite(largest) || largest <= kNoise) return;  // stays unused
    if (content.elements() > kMostElements) v = resized(v, home_);
    if (largest < kSmallest || largest > kLargest) {
      v = b_.op("scale", {v}, {{"factor", 1 / largest}});
    }
    run_new_nodes();
    pool_.push_back(v);
  }

  // -- ends
  ValueId projected(ValueId v) {
    const ValueId product = b_.op("mul", {v, input(b_.type(v), {})});
    List axes(static_cast<size_t>(b_.shape(v).rank()));
    std::iota(axes.begin(), axes.end(), 0);
    return reshaped(b_.op("reduce", {product}, {{"axes", axes}}), {1});
  }

  void add_loss() {
    // Most of what nothing reads, so that gradients flow through nearly all of the graph.
    const auto readers = readers_of(out_.graph);
    for (const ValueId v : pool_) {
      const bool read = !readers[v.at()].empty();
      if (v == pool_.back() || one_in(read ? 10 : 2)) losses_.push_back(projected(v));
    }
    if (one_in(3)) metrics_.push_back(any_of(losses_));
    for (std::vector<ValueId>* summands : {&losses_, &metrics_}) {
      if (summands->empty()) continue;
      for (size_t i = summands->size(); i > 1; --i) {
        std::swap((*summands)[i - 1], (*summands)[below(i)]);
      }
      ValueId sum = summands->front();
      for (size_t i = 1; i < summands->size(); ++i) {
        sum = either_way("add", sum, (*summands)[i]);
      }
      out_.graph.results.push_back(sum);
    }
    if (one_in(3)) out_.graph.results.push_back(b_.op("scale", {pool_.back()}, {{"factor", 2.0}}));
    const ValueId loss = out_.graph.results.front();
    out_.roots.push_back({loss, b_.constant(1, doubles({1}))});
  }

  // Of values that may have readers; two of one type may have one gradient arrive at them.
  void add_other_roots() {
    if (!one_in(4)) return;
    for (size_t i = 1 + below(2); i > 0; --i) {
      const ValueId value = any_of(pool_);
      const ValueId last = out_.roots.back().upstream;
      const bool shared = b_.type(last) == b_.type(value) && one_in(2);
      out_.roots.push_back({value, shared ? last : input(b_.type(value), {})});
    }
  }

  void choose_middle() {
    out_.wrt = out_.weights;
    if (!one_in(3)) return;
    for (size_t i = 1 + below(3); i > 0; --i) {
      const ValueId value = any_of(pool_);
      if (std::ranges::count(out_.wrt, value) == 0) out_.wrt.push_back(value);
    }
  }

  RandomGraph out_;
  Builder b_;
  std::mt19937_64 random_;
  Shape home_;
  ValueId square_;
  std::vector<ValueId> pool_, losses_, metrics_;
  std::vector<Tensor> contents_;  // by value, at point 0
  size_t run_ = 0;                // nodes that have been run
};

}  // namespace

RandomGraph random_graph(uint64_t seed) { return Generator(seed).run(); }

Tensor leaf(const RandomGraph& random, ValueId value, uint64_t point, int microbatch) {
  const Value& of = random.graph[value];
  Tensor tensor(of.type);
  if (of.role == Role::constant) {
    for (int64_t i = 0; i < tensor.elements(); ++i) tensor.set(i, of.init.scale);
    return tensor;
  }
  const auto varies = static_cast<uint64_t>(of.role == Role::input ? microbatch : 0);
  const uint64_t draw = (random.seed * 64 + point) * 64 + varies;
  fill_tensor(tensor, random.fills.at(value), draw * 4096 + value.at());
  return tensor;
}

}  // namespace thimble
