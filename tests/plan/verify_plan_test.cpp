// Sound plans pass; plans that were made wrong on purpose never do.
#include "plan/verify/verify_plan.h"

#include <algorithm>
#include <functional>
#include <map>

#include "graph/updates.h"
#include "support/plan_cases.h"

namespace thimble {
namespace {

// A chain of matmuls deep enough for every kind of recomputation, with a view and scratch.
Case hand_made(uint32_t seed) {
  Case result;
  result.name = "hand-made chain";
  Graph& graph = result.graph;
  Builder b(graph);
  ValueId x = b.input("x", kSquare);
  const ValueId rate = b.input("rate", {{1}, DType::f32});
  std::vector<ValueId> layers, weights;
  for (int i = 0; i < 6; ++i) {
    weights.push_back(b.weight(fmt::format("w{}", i), kSquare, {}));
    x = b.op("tanh", {b.op("matmul", {x, weights.back()})});
    layers.push_back(x);
  }
  ValueId g = b.op("reshape", {b.op("copy", {x})}, {{"shape", std::vector<int64_t>{8, 8}}});
  b.set_backward(true);
  for (size_t i = layers.size(); i-- > 0;) {
    g = b.op("tanh_backward", {layers[i], g});
    const ValueId gw = b.op("matmul", {i == 0 ? layers[0] : layers[i - 1], g});
    const ValueId next = b.op("matmul", {g, weights[i]});
    b.op("update", {weights[i], gw, rate}, {{"rule", "sgd_plain"}, {"weight_decay", 0.0}});
    g = next;
  }
  graph.results = {g};
  verify_graph(graph);
  result.costs = flat_costs(graph, Bytes(200));
  std::mt19937 random(seed);
  result.plan =
      lay_out({.graph = graph, .costs = result.costs}, with_recomputation(graph, random, 0.5));
  return result;
}

std::vector<Case> sound_cases() {
  std::vector<Case> cases = {planned_model(small_mlp()), planned_model(small_wrn()),
                             planned_model(small_resnet()), planned_model(small_lstm(), "adam")};
  for (const size_t i : {0, 1, 3}) cases.push_back(recomputed(cases[i], 7, 0.15));
  for (const Case& c : looped_cases()) cases.push_back(c);
  for (const uint32_t seed : {1u, 2u, 3u}) cases.push_back(hand_made(seed));
  return cases;
}

// The smallest plans of the policies that compute again.
std::vector<Case> recomputing_cases() {
  std::vector<Case> cases;
  const ModelOptions lstm = {.name = "lstm:layers=1,hidden=16,length=16", .batch = 16};
  for (const ModelOptions& options : {small_wrn(), lstm, small_unet()}) {
    const Case whole = planned_model(options);
    for (const char* policy : {"drop_cheap", "sqrt_segments", "chen_budget", "mirror",
                               "log_recursive", "log_recursive:2", "optimal"}) {
      Case c = whole;
      PlanRequest request = {.graph = whole.graph, .costs = whole.costs, .policy = policy};
      request.budget = Bytes(64);
      request.budget = std::get<Infeasible>(make_plan(request)).min_bytes;
      c.plan = std::get<Plan>(make_plan(request));
      c.name += fmt::format(" recomputed by {}", policy);
      cases.push_back(std::move(c));
    }
  }
  return cases;
}

TEST(VerifyPlan, SoundPlansPass) {
  for (const Case& c : sound_cases()) {
    EXPECT_EQ(find_fault(c.graph, c.costs, c.plan), std::nullopt) << c.name;
    for (const Sharing sharing : {Sharing::none, Sharing::in_place}) {
      const Plan plan = lay_out({.graph = c.graph,
                                 .costs = c.costs,
                                 .sharing = sharing,
                                 .microbatches = c.plan.microbatches},
                                schedule_of(c.plan));
      EXPECT_EQ(find_fault(c.graph, c.costs, plan), std::nullopt) << c.name;
      EXPECT_GE(plan.arena, c.plan.arena) << c.name;
    }
  }
}

TEST(VerifyPlan, RecomputationIsReallyThere) {
  for (const Case& c : sound_cases()) {
    const auto repeated = std::count_if(c.plan.calls.begin(), c.plan.calls.end(),
                                        [](const PlannedCall& s) { return s.recompute; });
    EXPECT_EQ(repeated > 0, c.name.find("recomp") != std::string::npos ||
                                c.name.find("hand-made") != std::string::npos)
        << c.name;
  }
}

// One way of making a plan wrong. Returns false where this plan offers no place for it.
using Corrupt = bool (*)(const Case& c, std::mt19937& random, Plan& plan);

// Whether anything depends on what the call makes: a reader, the caller, or the next step's
// weights.
bool affects(const Case& c, size_t s, size_t k) {
  const Node& node = c.graph[c.plan.calls[s].node];
  const ValueId value = node.outputs[k];
  const auto& results = c.graph.results;
  if (is_update(node)) return true;
  for (size_t later = s + 1; later < c.plan.calls.size(); ++later) {
    const Node& reader = c.graph[c.plan.calls[later].node];
    if (std::count(reader.inputs.begin(), reader.inputs.end(), value) != 0) return true;
    if (std::count(reader.accumulate.begin(), reader.accumulate.end(), value) != 0) return true;
    // Recomputed before anyone reads it.
    if (c.plan.calls[later].node == c.plan.calls[s].node) return false;
  }
  return std::count(results.begin(), results.end(), value) != 0;
}

// Whether no other call puts the first output at the same place: a copy that was made there before
// and happens to be whole still would do as well.
bool alone_there(const Case& c, size_t s) {
  const PlannedCall& call = c.plan.calls[s];
  return std::count_if(c.plan.calls.begin(), c.plan.calls.end(), [&](const PlannedCall& other) {
           return other.node == call.node && other.outputs[0] == call.outputs[0];
         }) == 1;
}

bool drop_a_step(const Case& c, std::mt19937& random, Plan& plan) {
  const auto s =
      pick(plan, random, [&](size_t i) { return affects(c, i, 0) && alone_there(c, i); });
  if (!s) return false;
  plan.calls.erase(plan.calls.begin() + static_cast<ptrdiff_t>(*s));
  return true;
}

bool drop_a_recomputation(const Case& c, std::mt19937& random, Plan& plan) {
  const auto s = pick(plan, random, [&](size_t i) {
    return plan.calls[i].recompute && affects(c, i, 0) && alone_there(c, i);
  });
  if (!s) return false;
  plan.calls.erase(plan.calls.begin() + static_cast<ptrdiff_t>(*s));
  return true;
}

// A value's first maker trades places with its first reader.
bool swap_maker_and_reader(const Case& c, std::mt19937& random, Plan& plan) {
  const auto reader = pick(plan, random, [&](size_t i) {
    for (const ValueId input : c.graph[plan.calls[i].node].inputs) {
      if (c.graph[input].producer.valid()) return true;
    }
    return false;
  });
  if (!reader) return false;
  for (const ValueId input : c.graph[plan.calls[*reader].node].inputs) {
    const NodeId producer = c.graph[input].producer;
    if (!producer.valid()) continue;
    for (size_t s = 0; s < *reader; ++s) {
      if (plan.calls[s].node != producer) continue;
      std::swap(plan.calls[s], plan.calls[*reader]);
      return true;
    }
  }
  return false;
}

// Addresses at which any call puts the value.
bool lies_at(const Case& c, ValueId value, Bytes at) {
  if (c.plan.sources[value.at()] == at) return true;
  for (const PlannedCall& call : c.plan.calls) {
    const Node& node = c.graph[call.node];
    for (size_t k = 0; k < node.outputs.size(); ++k) {
      if (node.outputs[k] == value && call.outputs[k] == at) return true;
    }
  }
  return false;
}

Bytes moved(std::mt19937& random, Bytes at) {
  constexpr int64_t kShifts[] = {64, 128, 4096, 1, 32, 63};
  const int64_t by = kShifts[any(random, std::size(kShifts))];
  return random() % 2 == 0 && at.count >= by ? at - Bytes(by) : at + Bytes(by);
}

bool shift_an_input(const Case& c, std::mt19937& random, Plan& plan) {
  const auto s = pick(plan, random, [&](size_t i) { return !plan.calls[i].inputs.empty(); });
  if (!s) return false;
  const size_t i = any(random, plan.calls[*s].inputs.size());
  Bytes& at = plan.calls[*s].inputs[i];
  at = moved(random, at);
  return !lies_at(c, c.graph[plan.calls[*s].node].inputs[i], at);
}

bool shift_an_output(const Case& c, std::mt19937& random, Plan& plan) {
  const auto s =
      pick(plan, random, [&](size_t i) { return affects(c, i, 0) && alone_there(c, i); });
  if (!s) return false;
  Bytes& at = plan.calls[*s].outputs[0];
  at = moved(random, at);
  return !lies_at(c, c.graph[plan.calls[*s].node].outputs[0], at);
}

// The call writes over something that another call will read.
bool write_over_a_live_value(const Case& c, std::mt19937& random, Plan& plan) {
  const auto s = pick(plan, random, [&](size_t i) {
    return i + 1 < plan.calls.size() && !is_update(c.graph[plan.calls[i].node]) &&
           c.graph[plan.calls[i].node].accumulate.empty() && !c.graph[plan.calls[i].node].op->view;
  });
  if (!s) return false;
  // A weight is live throughout: nothing but its update may write there.
  std::vector<size_t> weights;
  for (size_t v = 0; v < c.graph.values.size(); ++v) {
    const Value& value = c.graph.values[v];
    if (!value.producer.valid() && value.role == Role::weight) weights.push_back(v);
  }
  plan.calls[*s].outputs[0] = plan.sources[weights[any(random, weights.size())]];
  return true;
}

bool update_early(const Case& c, std::mt19937& random, Plan& plan) {
  const auto s =
      pick(plan, random, [&](size_t i) { return is_update(c.graph[plan.calls[i].node]); });
  if (!s) return false;
  const Node& update = c.graph[plan.calls[*s].node];
  // In front of the last reader of something that it overwrites, or of the maker of its gradient.
  for (size_t before = *s; before-- > 0;) {
    const Node& other = c.graph[plan.calls[before].node];
    bool hazard = false;
    for (size_t i = 0; i < update.inputs.size(); ++i) {
      const ValueId value = update.inputs[i];
      hazard |= std::count(other.outputs.begin(), other.outputs.end(), value) != 0;
      const bool overwritten = std::ranges::any_of(
          updates_of(update), [&](const Alias& a) { return a.input == static_cast<int>(i); });
      hazard |= overwritten && std::count(other.inputs.begin(), other.inputs.end(), value) != 0;
    }
    if (!hazard) continue;
    const auto first = plan.calls.begin() + static_cast<ptrdiff_t>(before);
    std::rotate(first, plan.calls.begin() + static_cast<ptrdiff_t>(*s),
                plan.calls.begin() + static_cast<ptrdiff_t>(*s) + 1);
    return true;
  }
  return false;
}

bool update_twice(const Case& c, std::mt19937& random, Plan& plan) {
  const auto s =
      pick(plan, random, [&](size_t i) { return is_update(c.graph[plan.calls[i].node]); });
  if (!s) return false;
  PlannedCall again = plan.calls[*s];
  again.recompute = random() % 2 == 0;
  plan.calls.push_back(again);
  return true;
}

bool claim_another_arena(const Case&, std::mt19937& random, Plan& plan) {
  plan.arena = random() % 2 == 0 ? plan.arena - Bytes(64) : plan.arena + Bytes(64);
  return true;
}

bool claim_another_peak(const Case&, std::mt19937& random, Plan& plan) {
  const Bytes by(64 * static_cast<int64_t>(1 + random() % 8));
  plan.peak_live = random() % 2 == 0 ? plan.peak_live - by : plan.peak_live + by;
  return true;
}

bool claim_another_peak_call(const Case&, std::mt19937& random, Plan& plan) {
  plan.peak_call += random() % 2 == 0 ? 1 : -1;
  return true;
}

// The sum stays what it was.
bool claim_other_roles(const Case&, std::mt19937& random, Plan& plan) {
  const size_t from = any(random, plan.peak_by_role.size());
  const size_t to = any(random, plan.peak_by_role.size());
  plan.peak_by_role[from] -= Bytes(64);
  plan.peak_by_role[to] += Bytes(64);
  return from != to;
}

bool claim_other_costs(const Case&, std::mt19937& random, Plan& plan) {
  double* const claims[] = {&plan.predicted_seconds, &plan.flops, &plan.extra_flops};
  double& claim = *claims[random() % 3];
  claim = random() % 2 == 0 ? claim * 1.001 + 1 : -1;
  return true;
}

bool shrink_scratch(const Case& c, std::mt19937& random, Plan& plan) {
  const auto s =
      pick(plan, random, [&](size_t i) { return plan.calls[i].workspace_size.count > 0; });
  if (!s) return false;
  const int64_t size = c.costs.nodes[plan.calls[*s].node.at()].workspace.count;
  plan.calls[*s].workspace_size =
      Bytes(static_cast<int64_t>(random() % static_cast<uint32_t>(size)));
  return true;
}

bool put_scratch_on_an_operand(const Case& c, std::mt19937& random, Plan& plan) {
  const auto s = pick(plan, random, [&](size_t i) {
    return plan.calls[i].workspace_size.count > 0 && !plan.calls[i].inputs.empty();
  });
  if (!s) return false;
  PlannedCall& call = plan.calls[*s];
  call.workspace_at = random() % 2 == 0 ? call.inputs[any(random, call.inputs.size())]
                                        : call.outputs[any(random, call.outputs.size())];
  return !c.graph[call.node].op->view;
}

bool lie_about_recomputation(const Case&, std::mt19937& random, Plan& plan) {
  PlannedCall& call = plan.calls[any(random, plan.calls.size())];
  call.recompute = !call.recompute;
  return true;
}

bool put_a_source_on_another(const Case& c, std::mt19937& random, Plan& plan) {
  std::vector<size_t> sources;
  for (size_t v = 0; v < c.graph.values.size(); ++v) {
    if (!c.graph.values[v].producer.valid()) sources.push_back(v);
  }
  const size_t a = sources[any(random, sources.size())], b = sources[any(random, sources.size())];
  plan.sources[a] = plan.sources[b];
  return a != b;
}

bool run_another_node(const Case& c, std::mt19937& random, Plan& plan) {
  const size_t s = any(random, plan.calls.size());
  const NodeId other = make_id<NodeId>(any(random, c.graph.nodes.size()));
  if (other == plan.calls[s].node || !affects(c, s, 0)) return false;
  plan.calls[s].node = other;
  return true;
}

bool break_the_shape(const Case& c, std::mt19937& random, Plan& plan) {
  switch (random() % 5) {
    case 0:
      plan.microbatches = static_cast<int>(random() % 3) - 2;
      return true;
    case 1:
      plan.sources.pop_back();
      return true;
    case 2:
      plan.calls[any(random, plan.calls.size())].outputs.clear();
      return true;
    case 3:
      plan.calls[any(random, plan.calls.size())].node = make_id<NodeId>(c.graph.nodes.size());
      return true;
    default:
      plan.calls[any(random, plan.calls.size())].node = NodeId{};
      return true;
  }
}

// Numbers that a hostile file may hold: their sums do not fit into 64 bits.
bool use_absurd_numbers(const Case& c, std::mt19937& random, Plan& plan) {
  constexpr int64_t kHuge = std::numeric_limits<int64_t>::max() / 64 * 64;
  const auto s = pick(plan, random, [&](size_t i) { return affects(c, i, 0); });
  if (!s) return false;
  PlannedCall& call = plan.calls[*s];
  switch (random() % 5) {
    case 0:
      call.outputs[0] = Bytes(kHuge);
      return true;
    case 1:
      call.workspace_size = Bytes(kHuge);
      return true;
    case 2:
      call.workspace_at = Bytes(kHuge);
      call.workspace_size = Bytes(std::max<int64_t>(64, call.workspace_size.count));
      return true;
    case 3:
      call.outputs[0] = Bytes(-kHuge);
      return true;
    default:
      for (Bytes& at : plan.sources) {
        if (at.count >= 0) at = Bytes(kHuge);
      }
      return true;
  }
}

const std::map<std::string, Corrupt>& corruptions() {
  static const std::map<std::string, Corrupt> all = {
      {"drop a call", drop_a_step},
      {"drop a recomputation", drop_a_recomputation},
      {"swap maker and reader", swap_maker_and_reader},
      {"shift an input", shift_an_input},
      {"shift an output", shift_an_output},
      {"write over a live value", write_over_a_live_value},
      {"update early", update_early},
      {"update twice", update_twice},
      {"claim another arena", claim_another_arena},
      {"claim another peak", claim_another_peak},
      {"claim another peak call", claim_another_peak_call},
      {"claim other roles", claim_other_roles},
      {"claim other costs", claim_other_costs},
      {"shrink scratch", shrink_scratch},
      {"put scratch on an operand", put_scratch_on_an_operand},
      {"lie about recomputation", lie_about_recomputation},
      {"put a source on another", put_a_source_on_another},
      {"run another node", run_another_node},
      {"break the shape", break_the_shape},
      {"use absurd numbers", use_absurd_numbers}};
  return all;
}

// How often each corruption was tried on the cases. None may pass.
std::map<std::string, int> expect_all_rejected(const std::vector<Case>& cases, int rounds) {
  std::map<std::string, int> tried;
  for (const Case& c : cases) {
    for (const auto& [name, corrupt] : corruptions()) {
      std::mt19937 random(static_cast<uint32_t>(std::hash<std::string>{}(c.name + name)));
      for (int round = 0; round < rounds; ++round) {
        Plan plan = c.plan;
        if (!corrupt(c, random, plan)) continue;
        EXPECT_NE(plan, c.plan) << c.name << ": " << name;
        ++tried[name];
        EXPECT_TRUE(find_fault(c.graph, c.costs, plan).has_value())
            << c.name << ": " << name << ", round " << round;
      }
    }
  }
  return tried;
}

int total(const std::map<std::string, int>& tried) {
  int sum = 0;
  for (const auto& [name, times] : tried) sum += times;
  return sum;
}

TEST(VerifyPlan, WrongPlansAreAllRejected) {
  const auto tried = expect_all_rejected(sound_cases(), 15);
  for (const auto& [name, corrupt] : corruptions()) EXPECT_GE(tried.at(name), 25) << name;
  EXPECT_GE(total(tried), 1500);
}

TEST(VerifyPlan, WrongPlansOfRecomputingPoliciesAreAllRejected) {
  const std::vector<Case> cases = recomputing_cases();
  for (const Case& c : cases) {
    EXPECT_EQ(find_fault(c.graph, c.costs, c.plan), std::nullopt) << c.name;
    EXPECT_TRUE(std::any_of(c.plan.calls.begin(), c.plan.calls.end(), [](const PlannedCall& call) {
      return call.recompute;
    })) << c.name;
  }
  const auto tried = expect_all_rejected(cases, 10);
  for (const auto& [name, corrupt] : corruptions()) EXPECT_GE(tried.at(name), 50) << name;
  EXPECT_GE(total(tried), 2000);
}

// Seconds predicted from other costs cannot be checked here, and are nobody's fault.
TEST(VerifyPlan, SecondsAreComparedOnlyWithTheCostsTheyCameFrom) {
  Case c = hand_made(1);
  c.plan.predicted_seconds *= 2;
  EXPECT_NE(find_fault(c.graph, c.costs, c.plan).value_or("").find("seconds"), std::string::npos);
  c.plan.costs = "another machine, measured";
  EXPECT_EQ(find_fault(c.graph, c.costs, c.plan), std::nullopt);
}

TEST(VerifyPlan, WhatIsMarkedToBeKeptMayNotBeMadeAgain) {
  Case c = hand_made(1);
  const auto again = std::find_if(c.plan.calls.begin(), c.plan.calls.end(),
                                  [](const PlannedCall& call) { return call.recompute; });
  ASSERT_NE(again, c.plan.calls.end());
  c.graph[again->node].mark = Mark::keep;
  EXPECT_NE(find_fault(c.graph, c.costs, c.plan).value_or("").find("marked to be kept"),
            std::string::npos);
}

// Every single call of a plan, not a sample: dropping it, or moving what it writes.
TEST(VerifyPlan, NoStepCanBeLeftOutOfASmallPlan) {
  const Case c = hand_made(11);
  for (size_t s = 0; s < c.plan.calls.size(); ++s) {
    if (!affects(c, s, 0) || !alone_there(c, s)) continue;
    Plan plan = c.plan;
    plan.calls.erase(plan.calls.begin() + static_cast<ptrdiff_t>(s));
    EXPECT_TRUE(find_fault(c.graph, c.costs, plan).has_value()) << s;
  }
}

TEST(VerifyPlan, FaultsAreNamed) {
  Case c = hand_made(1);
  const auto fault = [&](const std::function<void(Plan&)>& change) {
    Plan plan = c.plan;
    change(plan);
    return find_fault(c.graph, c.costs, plan).value_or("none");
  };
  EXPECT_NE(fault([](Plan& p) { p.arena += Bytes(64); }).find("claims an arena"),
            std::string::npos);
  EXPECT_NE(fault([](Plan& p) { p.peak_live -= Bytes(64); }).find("claims a live peak"),
            std::string::npos);
  EXPECT_NE(fault([](Plan& p) { p.calls[0].workspace_size = Bytes(1); }).find("too little scratch"),
            std::string::npos);
  EXPECT_NE(fault([](Plan& p) { p.calls[0].inputs[0] = Bytes(1 << 20); }).find("does not hold it"),
            std::string::npos);
  Plan broken = c.plan;
  broken.arena += Bytes(64);
  EXPECT_THROW(verify_plan(c.graph, c.costs, broken), InternalError);
  EXPECT_NO_THROW(verify_plan(c.graph, c.costs, c.plan));
}

}  // namespace
}  // namespace thimble
