// Launches of every step of the zoo, held to a card's limits without a card: blocks, threads and shared
// memory. Kernels of cuDNN's convolutions stay out, since they are not ours to launch.
#include <cuda_runtime.h>
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <array>
#include <unordered_set>

#include "backend/cuda/cuda_backend.h"
#include "base/error.h"
#include "graph/coded_weight.h"
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

// Frozen matrices in few bits, at sizes of language models: scratch is a slab of at most 16 MiB, and
// never the whole matrix. (On paper, products need no scratch.)
TEST(FrozenMatrices, AreDecodedASlabAtATime) {
  const auto backend = make_cuda_backend({});
  const OpDef& op = *find_op("coded_matmul");
  for (const CodedFormat format : {CodedFormat::nf4, CodedFormat::int8, CodedFormat::bf16}) {
    for (const CodedMatrix& matrix : {CodedMatrix{format, 576, 576},
                                      {format, 14336, 4096},
                                      {format, 4096, 14336},
                                      {format, 896, 4864},
                                      {format, 151936, 896},
                                      {format, 131, 67}}) {
      for (const DType dtype : {DType::f32, DType::f16}) {
        for (const int64_t turned : {1, 0}) {
          Attrs attrs = attrs_of(matrix);
          attrs.set("transpose", turned);
          std::vector<TensorType> inputs = {
              {{4, 1024, turned != 0 ? matrix.columns : matrix.rows}, dtype}};
          for (const TensorType& type : matrix.types()) inputs.push_back(type);
          const Signature signature = {&op, attrs, inputs, op.infer(inputs, attrs), 0};
          const int64_t launches = launch(signature, *backend);
          EXPECT_GE(launches, 2);
          EXPECT_TRUE(paper_card().refused.empty());
          paper_card().refused.clear();
          const int64_t bytes = backend->kernel(signature).workspace.count;
          EXPECT_LE(bytes, int64_t{16} << 20);
          EXPECT_LT(bytes, matrix.elements() * size_of(dtype)) << to_string(inputs[1]);
          EXPECT_GT(bytes, 0);
        }
      }
    }
  }
}

TEST(FrozenMatrices, OfAFineTuningStepStayWithinTheLimits) {
  ModelOptions options = {.name = "gpt2-124m", .batch = 4, .storage = DType::bf16};
  complete_model(options, true);
  const Graph graph =
      make_training_graph(options, parse_optimizer("adamw"), {}, 1, {}, {}, {},
                          {.adapters = parse_adapters("rank=16"), .frozen = CodedFormat::nf4})
          .model.graph;
  const auto backend = make_cuda_backend({});
  int64_t coded = 0;
  for (size_t n = 0; n < graph.nodes.size(); ++n) {
    const Signature signature = signature_of(graph, make_id<NodeId>(n));
    launch(signature, *backend);
    coded += signature.op->decodes ? 1 : 0;
  }
  EXPECT_TRUE(paper_card().refused.empty());
  paper_card().refused.clear();
  EXPECT_EQ(coded, 2 * 12 * 4 - 1);  // both ways, but for what the embedding goes into
}

// A frozen head of 16 bits beside rows of f32: slabs of it, beside the logits of a chunk of rows.
TEST(FrozenMatrices, AreDecodedInSlabsForALoss) {
  const auto backend = make_cuda_backend({});
  constexpr int64_t kRows = 2048, kClasses = 151936 + 5, kWidth = 896;
  for (const std::string_view name : {"vocabulary_loss", "vocabulary_loss_backward_data"}) {
    const OpDef& op = *find_op(name);
    const Attrs attrs = {{"rows_at_once", int64_t{256}}};
    std::vector<TensorType> inputs = {
        {{kRows, kWidth}}, {{kClasses, kWidth}, DType::bf16}, {{kRows}, DType::i32}, {{1}}};
    if (name != "vocabulary_loss") inputs.push_back({{1}});
    const Signature frozen = {&op, attrs, inputs, op.infer(inputs, attrs), 0};
    EXPECT_GT(launch(frozen, *backend), 8 * kClasses * kWidth * 4 / (int64_t{16} << 20));
    EXPECT_TRUE(paper_card().refused.empty());
    inputs[1].dtype = DType::f32;
    const Signature plain = {&op, attrs, inputs, op.infer(inputs, attrs), 0};
    const Bytes more = backend->kernel(frozen).workspace - backend->kernel(plain).workspace;
    EXPECT_GT(more.count, int64_t{8} << 20);
    EXPECT_LE(more.count, int64_t{17} << 20);
  }
}

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
