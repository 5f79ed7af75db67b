// Adapters as PEFT's files, out and in.
#include "weights/adapter_file.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "execute/costs.h"
#include "file_support.h"
#include "graph/builder.h"
#include "plan/make_plan.h"
#include "transform/adapt.h"
#include "weights/initialize.h"
#include "weights/safetensors.h"

namespace thimble {
namespace {

// Two linear layers with adapters, drawn from a seed.
class Adapted {
 public:
  explicit Adapted(const AdapterSpec& spec, uint64_t seed = 1) {
    graph_.name = "net";
    Builder b(graph_);
    const Attrs turned = {{"transpose_a", int64_t{0}}, {"transpose_b", int64_t{1}}};
    const ValueId x = b.input("x", {{2, 5}});
    const ValueId up = b.op("matmul", {x, b.weight("up.weight", {{7, 5}}, {})}, turned);
    const ValueId y = b.op("matmul", {up, b.weight("block.down.weight", {{3, 7}}, {})}, turned);
    graph_.results = {y};
    ValueId rng;
    adapt(graph_, spec, rng);
    backend_ = make_backend("cpu", {.threads = 1});
    const Costs costs = gather_costs(graph_, *backend_);
    plan_ = std::get<Plan>(make_plan({.graph = graph_, .costs = costs}));
    arena_ = backend_->allocate(plan_.arena);
    program_ = std::make_unique<Program>(graph_, plan_, *backend_, *arena_);
    initialize(*program_, seed);
  }

  Program& program() { return *program_; }
  std::string numbers() {
    std::string all;
    for (const Adapter& adapter : find_adapters(graph_)) {
      for (const ValueId value : {adapter.a, adapter.b}) {
        std::string bytes(static_cast<size_t>(graph_[value].type.bytes().count), '\0');
        program_->read(value, 0, std::as_writable_bytes(std::span(bytes)));
        all += bytes;
      }
    }
    return all;
  }

 private:
  Graph graph_;
  std::unique_ptr<Backend> backend_;
  Plan plan_;
  std::unique_ptr<Memory> arena_;
  std::unique_ptr<Program> program_;
};

TEST(AdapterFile, GoesOutAndIn) {
  const TemporaryFolder folder;
  const AdapterSpec spec = {.rank = 2, .alpha = 8};
  Adapted first(spec, 1), second(spec, 2);
  ASSERT_NE(first.numbers(), second.numbers());
  save_adapters(folder / "adapter", first.program(), spec, {}, "base");
  EXPECT_TRUE(is_adapter_folder(folder / "adapter"));
  load_adapters(folder / "adapter", second.program(), {});
  EXPECT_EQ(first.numbers(), second.numbers());
  const auto config = nlohmann::json::parse(slurp(folder / "adapter/adapter_config.json"));
  EXPECT_EQ(config["r"], 2);
  EXPECT_EQ(config["lora_alpha"], 8);
  const SafetensorsFile file(folder / "adapter/adapter_model.safetensors");
  for (const StoredTensor& tensor : file.tensors()) {
    EXPECT_TRUE(tensor.name.starts_with("base_model.model.")) << tensor.name;
    EXPECT_NE(tensor.name.find(".lora_"), std::string::npos) << tensor.name;
  }
}

// GPT-2's Conv1D: [in, out] in its own program, whichever way ours has it.
TEST(AdapterFile, SaysHowTheWeightsOfTheBaseLie) {
  const TemporaryFolder folder;
  const AdapterSpec spec = {.rank = 2, .alpha = 8};
  Adapted net(spec);
  ForeignNames names = {.program = "transformers"};
  names.tensors = {{.own = "up.weight", .theirs = "h.up.weight", .axes = {1, 0}},
                   {.own = "block.down.weight", .theirs = "h.down.weight", .axes = {1, 0}}};
  const auto config = [&](const std::string& name) {
    return nlohmann::json::parse(slurp(folder / name + "/adapter_config.json"));
  };
  save_adapters(folder / "conv1d", net.program(), spec, names, "gpt2");
  EXPECT_EQ(config("conv1d")["fan_in_fan_out"], true);
  EXPECT_EQ(config("conv1d")["target_modules"][0], "h.up");
  save_adapters(folder / "linear", net.program(), spec, {}, "net");
  EXPECT_EQ(config("linear")["fan_in_fan_out"], false);
  Adapted second(spec, 2);
  load_adapters(folder / "conv1d", second.program(), names);
  EXPECT_EQ(second.numbers(), net.numbers());
}

TEST(AdapterFile, OfAnotherKindIsRefusedAndNothingIsLoaded) {
  const TemporaryFolder folder;
  Adapted net({.rank = 2, .alpha = 8});
  save_adapters(folder / "adapter", net.program(), {.rank = 2, .alpha = 8}, {}, "base");
  const auto refused = [&](const AdapterSpec& spec, const std::string& why) {
    Adapted other(spec, 3);
    const std::string before = other.numbers();
    EXPECT_TRUE(throws_saying<UserError>(
        [&] { load_adapters(folder / "adapter", other.program(), {}); }, why));
    EXPECT_EQ(other.numbers(), before);
  };
  refused({.rank = 3, .alpha = 8}, "another base or rank");
  refused({.rank = 2, .alpha = 4}, "rank=2,alpha=8");
  auto config = nlohmann::json::parse(slurp(folder / "adapter/adapter_config.json"));
  config["use_dora"] = true;
  spill(folder / "adapter/adapter_config.json", config.dump());
  refused({.rank = 2, .alpha = 8}, "use_dora");
}

}  // namespace
}  // namespace thimble
