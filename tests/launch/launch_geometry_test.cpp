// Launches of every step of the zoo, held to a card's limits without a card: blocks, threads and shared
// memory. Kernels of cuDNN's convolutions stay out, since they are not ours to launch.
#include <cuda_runtime.h>
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <array>
#include <unordered_set>

#include "backend/cuda/cuda_backend.h"
#include "base/error.h"
#include "paper_card.h"
#include "pipeline/training_graph.h"

namespace thimble {
namespace {

// Ops whose kernels cuDNN brings.
bool is_of_cudnn(std::string_view op) { return op.starts_with("conv2d"); }

// Runs a kernel on tensors that are not there; returns how often it launched.
int64_t launch(const Signature& signature, Backend& backend) {
  alignas(256) static std::array<std::byte, 4096> somewhere;
  const auto refs = [&](const std::vector<TensorType>& types) {
    std::vector<TensorRef> made;
    for (const TensorType& type : types) made.push_back({somewhere.data(), type});
    return made;
  };
  const std::vector<TensorRef> inputs = refs(signature.inputs), outputs = refs(signature.outputs);
  const int64_t before = paper_card().launches;
  backend.kernel(signature).run({.attrs = &signature.attrs,
                                 .inputs = inputs,
                                 .outputs = outputs,
                                 .accumulate = signature.accumulate,
                                 .workspace = somewhere.data()});
  return paper_card().launches - before;
}

struct Net {
  std::string name;
  int64_t batch;
};

class LaunchesOfAStep : public testing::TestWithParam<std::tuple<Net, DType>> {};

TEST_P(LaunchesOfAStep, StayWithinTheLimitsOfACard) {
  const auto& [net, storage] = GetParam();
  ModelOptions options = {.name = net.name, .batch = net.batch, .storage = storage};
  complete_model(options, true);
  const Graph graph = make_training_graph(options, parse_optimizer("adamw")).model.graph;
  const auto backend = make_cuda_backend({});
  std::unordered_set<Signature, SignatureHash> seen;
  int64_t launches = 0;
  for (size_t n = 0; n < graph.nodes.size(); ++n) {
    const Signature signature = signature_of(graph, make_id<NodeId>(n));
    if (is_of_cudnn(signature.op->name) || !seen.insert(signature).second) continue;
    launches += launch(signature, *backend);
    for (const std::string& refused : paper_card().refused) {
      ADD_FAILURE() << signature.op->name << " of " << to_string(signature.outputs[0]) << ": "
                    << refused;
    }
    paper_card().refused.clear();
  }
  EXPECT_GE(launches, static_cast<int64_t>(seen.size()) / 4);  // views and products launch nothing
}

std::string case_name(const testing::TestParamInfo<LaunchesOfAStep::ParamType>& info) {
  const auto& [net, storage] = info.param;
  std::string name = fmt::format("{}_b{}_{}", net.name, net.batch, name_of(storage));
  for (char& c : name) c = std::isalnum(static_cast<unsigned char>(c)) ? c : '_';
  return name;
}

// Usual sizes, and some at which an extent passes 65,535 blocks.
INSTANTIATE_TEST_SUITE_P(
    Zoo, LaunchesOfAStep,
    testing::Combine(testing::Values(Net{"wrn-28-2", 100}, Net{"wrn-28-2", 4096},
                                     Net{"resnet-50", 32}, Net{"resnet-1001", 32},
                                     Net{"mlp", 65536 * 3}, Net{"lenet", 64}, Net{"unet", 16},
                                     Net{"gpt2-124m", 8}, Net{"gpt2-124m", 512},
                                     Net{"lstm:layers=4,hidden=1024,length=512", 64},
                                     Net{"dynamicconv-iwslt", 32}, Net{"lightconv-iwslt", 512}),
                     testing::Values(DType::f32, DType::f16, DType::bf16)),
    case_name);

// The limits are a check that can fail.
TEST(PaperCard, RefusesALaunchThatNoCardTakes) {
  const auto launch_of = [](dim3 grid, dim3 block, size_t shared) {
    static const int kernel = 0;
    cudaLaunchKernel(&kernel, grid, block, nullptr, shared, nullptr);
    const size_t refused = paper_card().refused.size();
    paper_card().refused.clear();
    return refused;
  };
  EXPECT_EQ(launch_of({1, 65535, 1}, {32, 32, 1}, 48 << 10), 0u);
  EXPECT_EQ(launch_of({1, 65536, 1}, {32, 1, 1}, 0), 1u);
  EXPECT_EQ(launch_of({0, 1, 1}, {32, 1, 1}, 0), 1u);
  EXPECT_EQ(launch_of({1, 1, 1}, {33, 32, 1}, 0), 1u);
  EXPECT_EQ(launch_of({1, 1, 1}, {32, 1, 1}, (48 << 10) + 1), 1u);
}

}  // namespace
}  // namespace thimble
