// Where timed kernels find their tensors.
#include "execute/calibrate.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "backend/backend.h"
#include "backend/kernel.h"
#include "backend/tunable_kernel.h"
#include "pipeline/training_graph.h"

namespace thimble {
namespace {

// Records whether the scratch and the results of a run share a byte.
class Watching final : public Kernel {
 public:
  Watching(Bytes scratch, int& overlaps) : overlaps_(overlaps) {
    name = "watching";
    workspace = scratch;
  }
  void run(const KernelArgs& args) override {
    struct Range {
      const std::byte *begin, *end;
    };
    std::vector<Range> written = {{args.workspace, args.workspace + workspace.count}};
    for (const TensorRef& output : args.outputs) {
      const auto* const begin = static_cast<const std::byte*>(output.data);
      written.push_back({begin, begin + output.type.bytes().count});
    }
    for (size_t i = 0; i < written.size(); ++i) {
      for (size_t j = 0; j < i; ++j) {
        overlaps_ += written[i].begin < written[j].end && written[j].begin < written[i].end;
      }
    }
  }

 private:
  int& overlaps_;
};

class WatchingBackend : public Backend {
 public:
  std::string_view name() const override { return "watching"; }
  std::string machine() const override { return "none"; }
  bool runs() const override { return true; }
  Kernel& kernel(const Signature& signature) override {
    return signature.outputs[0].elements() < 4096 ? small_ : large_;
  }
  double seconds(const Signature&) const override { return 1; }
  std::unique_ptr<Memory> allocate(Bytes size) override { return cpu_->allocate(size); }
  void copy_in(std::byte* to, std::span<const std::byte> from) override { cpu_->copy_in(to, from); }
  void copy_out(std::span<std::byte> to, const std::byte* from) override {
    cpu_->copy_out(to, from);
  }
  void synchronise() override {}
  double seconds_for(const std::function<void()>& work) override {
    work();
    return 1;
  }

  int overlaps = 0;

 private:
  std::unique_ptr<Backend> cpu_ = make_backend("cpu", 1);
  Watching small_{Bytes(1 << 10), overlaps}, large_{Bytes(64 << 10), overlaps};
};

TEST(Calibrate, WritesOfOneRunNeverOverlapInTightRoom) {
  const auto use = [](int64_t columns) {
    const TensorType rows = {{8, columns}, DType::f32};
    return KernelUse{std::to_string(columns), {find_op("relu"), {}, {rows}, {rows}, 0}, 1, 1, -1};
  };
  const std::vector<KernelUse> kernels = {use(1024), use(160), use(992)};
  WatchingBackend backend;
  for (const int64_t more : {0, 1 << 10, 40 << 10, 200 << 10}) {
    CalibrateOptions options;
    options.rounds = 9;
    options.room = room_for(kernels[0], backend.kernel(kernels[0].signature)) + Bytes(more);
    EXPECT_EQ(calibrate(kernels, backend, options).size(), kernels.size());
    EXPECT_EQ(backend.overlaps, 0) << more;
  }
}

class TwoWays final : public TunableKernel {
 public:
  TwoWays() { use(0); }
  int variants() const override { return 2; }
  int used() const override { return used_; }
  void use(int variant) override {
    used_ = variant;
    name = variant == 0 ? "first" : "second";
    workspace = Bytes(1000 * variant);
  }
  void run(const KernelArgs&) override {}

 private:
  int used_ = 0;
};

class TunableBackend final : public WatchingBackend {
 public:
  Kernel& kernel(const Signature&) override { return ways; }

  TwoWays ways;
};

// A step was priced with the variants in use, and its plan has their scratch.
TEST(Calibrate, KernelsKeepTheirVariantsWhileTheyAreListed) {
  const Graph graph =
      make_training_graph({.name = "mlp:hidden=16", .batch = 4, .image = {8, 8, 1}, .classes = 10},
                          parse_optimizer("sgd"))
          .model.graph;
  for (const int used : {0, 1}) {
    TunableBackend backend;
    backend.ways.use(used);
    const std::vector<KernelUse> kernels = kernels_of(graph, backend);
    EXPECT_EQ(std::ranges::count(kernels, 0, &KernelUse::variant),
              std::ranges::count(kernels, 1, &KernelUse::variant));
    EXPECT_EQ(backend.ways.used(), used);
    EXPECT_EQ(backend.ways.workspace, Bytes(1000 * used));
  }
}

}  // namespace
}  // namespace thimble
