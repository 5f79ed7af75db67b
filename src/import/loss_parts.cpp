#include "import/loss_parts.h"

#include <algorithm>
#include <array>
#include <set>

#include "graph/row_flow.h"

namespace thimble {
namespace {

using Kind = RowFlow::Kind;

// The loss is no sum over rows; what makes it so.
struct Mixed {
  std::string what;
};

// By value: whether it follows from what the data fill in.
std::vector<bool> fed_values(const Graph& graph, std::span<const ValueId> fed) {
  std::vector<bool> follows(graph.values.size(), false);
  for (const ValueId value : fed) follows[value.at()] = true;
  for (const Node& node : graph.nodes) {
    const bool any =
        std::ranges::any_of(node.inputs, [&](ValueId input) { return follows[input.at()]; });
    for (const ValueId output : node.outputs) follows[output.at()] = any;
  }
  return follows;
}

// By value: whether a weight's gradient passes through it.
std::vector<bool> trained_values(const Graph& graph) {
  std::vector<bool> trained(graph.values.size(), false);
  for (size_t v = 0; v < trained.size(); ++v) trained[v] = graph.values[v].role == Role::weight;
  for (const Node& node : graph.nodes) {
    if (node.op->gradient == nullptr) continue;
    const bool passes =
        std::ranges::any_of(node.inputs, [&](ValueId input) { return trained[input.at()]; });
    for (const ValueId output : node.outputs) trained[output.at()] = passes;
  }
  return trained;
}

class Finder {
 public:
  Finder(const Lowering& net, std::vector<RowFlow> flows)
      : net_(net),
        flows_(std::move(flows)),
        trained_(trained_values(net.graph())),
        fed_(fed_values(net.graph(), net.fed())) {}

  LossParts find(const std::string& loss) {
    LossParts parts;
    try {
      walk(loss, {}, kMostDeep);
      parts.terms = std::move(terms_);
      parts.weight = std::move(weight_);
    } catch (const Mixed& mixed) {
      parts.refused = mixed.what;
    }
    terms_.clear();
    weight_.reset();
    plain_ = false;
    all_count_ = true;
    try {
      walk(loss, {}, kMostDeep);
      parts.terms_when_all_count = std::move(terms_);
      if (!parts.refused.empty() && !parts.terms_when_all_count.empty()) {
        parts.terms = parts.terms_when_all_count;
        parts.labels_all_count = true;
        parts.refused.clear();
      }
    } catch (const Mixed&) {  // said above
    }
    return parts;
  }

 private:
  static constexpr int kMostDeep = 4096;

  RowFlow flow_of(const std::string& value) const {
    return value.empty() || !net_.knows(value) ? RowFlow{} : flows_[net_.value_of(value).at()];
  }
  bool trains(const std::string& value) const {
    return net_.knows(value) && trained_[net_.value_of(value).at()];
  }

  // Whether it is a number for each row, the same for all, added up: a multiple of how many there
  // are.
  bool counts_rows(const std::string& value) const {
    if (value.empty() || flow_of(value).kind != Kind::sum) return false;
    const size_t at = net_.value_of(value).at();
    return !fed_[at] && !trained_[at];
  }

  // A sum over rows divided by their number is a mean; a mean times their number is a sum.
  void add(LossTerm term, const std::string& value, bool mean, double entries) {
    if (mean ? term.counts < 0 || term.counts > 1 : term.counts > 0 || term.counts < -1) {
      throw Mixed{"its loss grows with the number of rows otherwise than a sum over them"};
    }
    term.value = value;
    term.mean = mean ? term.counts == 0 : term.counts == -1;
    term.entries = entries;
    terms_.push_back(std::move(term));
  }

  // Splits the value, which the loss is linear in.
  void walk(const std::string& value, LossTerm term, int deep) {
    if (deep == 0) throw Mixed{"it is a sum of too many"};
    const RowFlow flow = flow_of(value);
    if (flow.kind == Kind::fixed && term.counts != 0) throw culprit(value);
    if (flow.kind == Kind::sum || flow.kind == Kind::mean || flow.kind == Kind::fixed) {
      if (weight_ && !all_count_) throw several_weights();
      plain_ = true;
      return add(std::move(term), value, flow.kind != Kind::sum, flow.entries);
    }
    if (const Lowering::Mean* mean = net_.mean_of(value))
      return walk_mean(*mean, value, std::move(term));
    const Lowering::Made* made = net_.maker_of(value);
    if (made == nullptr) throw culprit(value);
    if (is_one_of(made->op, {"reshape", "cast", "permute", "expand"})) {
      return walk(made->in[0].value, std::move(term), deep - 1);
    }
    if (made->op == "neg") {
      term.coefficient = -term.coefficient;
      return walk(made->in[0].value, std::move(term), deep - 1);
    }
    if (made->in.size() != 2 || !is_one_of(made->op, {"add", "sub", "mul", "div"})) {
      throw culprit(value);
    }
    const Operand &a = made->in[0], &b = made->in[1];
    if (made->op == "add" || made->op == "sub") {
      walk_operand(a, term, deep);
      if (made->op == "sub") term.coefficient = -term.coefficient;
      return walk_operand(b, std::move(term), deep);
    }
    if (a.number || b.number) {
      const double number = a.number ? *a.number : *b.number;
      if (made->op == "div" && a.number) throw culprit(value);
      term.coefficient = made->op == "mul" ? term.coefficient * number : term.coefficient / number;
      return walk(a.number ? b.value : a.value, std::move(term), deep - 1);
    }
    walk_product(*made, value, std::move(term), deep);
  }

  void walk_operand(const Operand& operand, LossTerm term, int deep) {
    if (!operand.number) return walk(operand.value, std::move(term), deep - 1);
    term.coefficient *= *operand.number;
    if (weight_ && !all_count_) throw several_weights();
    plain_ = true;
    add(std::move(term), "", true, 1);
  }

  // a * b, or a / b, of which one may be the same whatever the rows are, or a weight of all of
  // them.
  void walk_product(const Lowering::Made& made, const std::string& value, LossTerm term, int deep) {
    const bool divides = made.op == "div";
    std::string a = made.in[0].value, b = made.in[1].value;
    if (!divides && flow_of(a).kind == Kind::fixed) std::swap(a, b);
    if (!divides && counts_rows(a)) std::swap(a, b);
    const bool counts = counts_rows(b);
    if (counts || flow_of(b).kind == Kind::fixed) {
      term.factors.push_back({b, divides});
      term.counts += !counts ? 0 : divides ? -1 : 1;
      return walk(a, std::move(term), deep - 1);
    }
    const auto adds_up = [&](const std::string& of) {
      const Kind kind = flow_of(of).kind;
      return kind == Kind::sum || kind == Kind::mean;
    };
    if (!divides && (!adds_up(a) || trains(b))) std::swap(a, b);
    LossWeight weight = {.value = b, .divides = divides};
    if (!adds_up(a) || trains(b) || !sums_of(b, weight, deep - 1)) throw culprit(value);
    add_weighted(std::move(weight), a, std::move(term));
  }

  void walk_mean(const Lowering::Mean& mean, const std::string& value, LossTerm term) {
    if (flow_of(mean.sum).kind != Kind::sum) throw culprit(mean.sum);
    if (all_count_) {
      if (!mean.of_fed_labels) throw several_weights();
      return add(std::move(term), value, true, 1);
    }
    if (flow_of(mean.weight).kind != Kind::sum) throw culprit(mean.weight);
    add_weighted({.value = mean.weight, .divides = true, .sums = {{mean.weight, false}}}, mean.sum,
                 std::move(term));
  }

  void add_weighted(LossWeight weight, const std::string& sum, LossTerm term) {
    if (all_count_ || plain_ || (weight_ && !(*weight_ == weight))) throw several_weights();
    if (term.counts != 0) throw culprit(sum);
    weight_ = std::move(weight);
    const RowFlow flow = flow_of(sum);
    add(std::move(term), sum, flow.kind == Kind::mean, flow.entries);
  }

  // Whether the value is a function of sums over rows; which ones.
  bool sums_of(const std::string& value, LossWeight& weight, int deep) const {
    const RowFlow flow = flow_of(value);
    if (flow.kind == Kind::fixed) return true;
    if (flow.kind == Kind::sum || flow.kind == Kind::mean) {
      weight.sums.push_back({value, flow.kind == Kind::mean});
      return true;
    }
    const Lowering::Made* made = net_.maker_of(value);
    if (flow.kind != Kind::of_sums || made == nullptr || deep == 0) return false;
    return std::ranges::all_of(made->in, [&](const Operand& in) {
      return in.none() || in.number || sums_of(in.value, weight, deep - 1);
    });
  }

  static bool is_one_of(std::string_view op, std::initializer_list<std::string_view> ops) {
    return std::ranges::find(ops, op) != ops.end();
  }

  static Mixed several_weights() {
    return {
        "its loss adds means over different counts, which parts of a batch do not have in common"};
  }

  // The first node on the way to the value that makes of rows what cannot be told apart.
  Mixed culprit(const std::string& value) const {
    const Graph& graph = net_.graph();
    std::vector<ValueId> next = {net_.value_of(value)};
    std::set<ValueId> seen;
    NodeId first = graph[next[0]].producer;
    while (!next.empty()) {
      const ValueId at = next.back();
      next.pop_back();
      const NodeId producer = graph[at].producer;
      const bool of_interest = flows_[at.at()].kind == Kind::mixed;
      if (!producer.valid() || !of_interest || !seen.insert(at).second) continue;
      first = std::min(first, producer);
      next.insert(next.end(), graph[producer].inputs.begin(), graph[producer].inputs.end());
    }
    const std::string where = first.valid() ? net_.origin_of(first) : "";
    return {fmt::format("its loss is no sum over rows{}", where.empty() ? "" : ": " + where)};
  }

  const Lowering& net_;
  const std::vector<RowFlow> flows_;
  const std::vector<bool> trained_, fed_;
  std::vector<LossTerm> terms_;
  std::optional<LossWeight> weight_;
  bool plain_ = false;      // a term has no weight
  bool all_count_ = false;  // means over labels are taken for means over rows
};

}  // namespace

std::pair<ModelOptions, ModelOptions> two_sizes_of(const ModelOptions& options) {
  // Primes, so that few other sizes of a net are multiples of them by chance.
  constexpr int64_t kOne = 61, kOther = 67;
  ModelOptions one = options;
  one.step_batch = 0;
  one.training = true;
  one.storage = DType::f32;
  one.master = false;
  one.batch = kOne;
  ModelOptions other = one;
  other.batch = kOther;
  return {std::move(one), std::move(other)};
}

LossParts find_loss_parts(const Lowering& net, const Lowering& other, std::string_view loss) {
  LossParts parts;
  auto flows = row_flows(net.graph(), net.rows(), other.graph(), other.rows(), net.fed());
  if (!flows) {
    parts.refused = "what it computes depends on how many rows there are";
    return parts;
  }
  return Finder(net, std::move(*flows)).find(std::string(loss));
}

}  // namespace thimble
