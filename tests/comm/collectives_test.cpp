// Collectives among simulated ranks, against sums and copies written out.
#include <gtest/gtest.h>

#include "graph/op.h"
#include "support/simulated_ranks.h"
#include "support/tensor.h"

namespace thimble {
namespace {

struct Case {
  int ranks;
  int64_t elements;
  DType dtype;
};

void PrintTo(const Case& c, std::ostream* out) {
  *out << c.ranks << " ranks, " << c.elements << " of " << name_of(c.dtype);
}

class Collectives : public testing::TestWithParam<Case> {
 protected:
  int ranks() const { return GetParam().ranks; }
  int64_t elements() const { return GetParam().elements; }
  int64_t part() const { return (elements() + ranks() - 1) / ranks(); }
  TensorType whole() const { return {{elements()}, GetParam().dtype}; }
  TensorType own() const { return {{part()}, GetParam().dtype}; }
  Attrs parts() const { return {{"ranks", int64_t{ranks()}}, {"part", part()}}; }

  // Numbers of very different sizes, so that another order of a sum shows.
  Tensor of_rank(const TensorType& type, int rank) const {
    Tensor tensor(type);
    fill_tensor(tensor, {}, 17 + static_cast<uint64_t>(rank));
    for (int64_t i = rank; i < tensor.elements(); i += 3) tensor.set(i, 1000 * tensor.get(i));
    return tensor;
  }

  // The outputs of every rank.
  std::vector<Tensor> run(std::string_view name, const Attrs& attrs,
                          const std::vector<std::vector<Tensor>>& inputs, const Tensor& prior,
                          bool add) const {
    const OpDef& op = *find_op(name);
    std::vector<Tensor> results(static_cast<size_t>(ranks()), prior);
    SimulatedRanks(ranks()).run([&](Communicator& comm) {
      const size_t rank = static_cast<size_t>(comm.rank());
      std::vector<Tensor> own = inputs[rank];
      std::vector<TensorRef> refs;
      Signature signature = {&op, attrs, {}, {prior.type()}, add ? 1u : 0u};
      for (Tensor& input : own) {
        refs.push_back(input.ref());
        signature.inputs.push_back(input.type());
      }
      ASSERT_EQ(op.infer(signature.inputs, attrs).front(), prior.type());
      std::vector<std::byte> workspace;
      if (op.reference_workspace != nullptr) {
        workspace.resize(static_cast<size_t>(op.reference_workspace(signature).count));
      }
      const TensorRef output = results[rank].ref();
      op.reference({&attrs, refs, {&output, 1}, add ? 1u : 0u, workspace.data(), &comm});
      EXPECT_TRUE(results[rank].guards_intact());
    });
    return results;
  }

  // ((prior + x0) + x1) + ..., as microbatches are added up.
  Tensor sum(const std::vector<std::vector<Tensor>>& inputs, const Tensor& prior, bool add) const {
    Tensor result = prior;
    for (int64_t i = 0; i < elements(); ++i) {
      float total = add ? static_cast<float>(prior.get(i)) : 0.0f;
      for (const auto& of : inputs) total += static_cast<float>(of[0].get(i));
      result.set(i, static_cast<double>(total));
    }
    return result;
  }

  std::vector<std::vector<Tensor>> inputs(const TensorType& type) const {
    std::vector<std::vector<Tensor>> all;
    for (int k = 0; k < ranks(); ++k) all.push_back({of_rank(type, k)});
    return all;
  }
};

TEST_P(Collectives, AllReduceSumsInTheOrderOfRanks) {
  const auto all = inputs(whole());
  const Tensor prior = of_rank(whole(), 99);
  for (const bool add : {false, true}) {
    const Tensor expected = sum(all, prior, add);
    for (const Tensor& got : run("all_reduce", {{"ranks", int64_t{ranks()}}}, all, prior, add)) {
      EXPECT_TRUE(same_bits(got, expected)) << (add ? "added" : "written");
    }
  }
}

TEST_P(Collectives, ReduceScatterGivesEveryRankItsPartOfTheSum) {
  const auto all = inputs(whole());
  const Tensor expected = sum(all, of_rank(whole(), 0), false);
  const std::vector<Tensor> got = run("reduce_scatter", parts(), all, Tensor(own()), false);
  for (int k = 0; k < ranks(); ++k) {
    for (int64_t i = 0; i < part(); ++i) {
      const int64_t at = k * part() + i;
      EXPECT_EQ(got[static_cast<size_t>(k)].get(i), at < elements() ? expected.get(at) : 0.0) << at;
    }
  }
}

TEST_P(Collectives, GatheringPutsPartsOneBehindTheOther) {
  const auto all = inputs(own());
  Attrs shaped = parts();
  shaped.set("shape", std::vector<int64_t>{elements()});
  for (const Tensor& got : run("all_gather", shaped, all, Tensor(whole()), false)) {
    for (int64_t i = 0; i < elements(); ++i) {
      EXPECT_EQ(got.get(i), all[static_cast<size_t>(i / part())][0].get(i % part())) << i;
    }
  }
}

TEST_P(Collectives, PartsOfAWholeGatherToIt) {
  const Tensor before = of_rank(whole(), 5);
  std::vector<std::vector<Tensor>> same(static_cast<size_t>(ranks()), {before});
  const std::vector<Tensor> cut = run("own_part", parts(), same, Tensor(own()), false);
  std::vector<std::vector<Tensor>> pairs;
  for (const Tensor& piece : cut) pairs.push_back({of_rank(whole(), 1), piece});
  for (const Tensor& got : run("gather_update", parts(), pairs, of_rank(whole(), 1), false)) {
    EXPECT_TRUE(same_bits(got, before));
  }
}

TEST_P(Collectives, BroadcastGivesAllWhatTheRootHas) {
  const auto all = inputs(whole());
  const int root = ranks() - 1;
  const Attrs attrs = {{"ranks", int64_t{ranks()}}, {"root", int64_t{root}}};
  for (const Tensor& got : run("broadcast", attrs, all, Tensor(whole()), false)) {
    EXPECT_TRUE(same_bits(got, all[static_cast<size_t>(root)][0]));
  }
}

// More elements than are summed at a time, and fewer than there are ranks.
INSTANTIATE_TEST_SUITE_P(Sizes, Collectives,
                         testing::Values(Case{1, 10, DType::f32}, Case{2, 10, DType::f32},
                                         Case{3, 1000, DType::f32}, Case{5, 3, DType::f32},
                                         Case{4, 1, DType::f32}, Case{2, 600'001, DType::f32},
                                         Case{3, 77, DType::f16}, Case{2, 4099, DType::bf16}));

}  // namespace
}  // namespace thimble
