// Bases of adapters: named by their bytes in checkpoints, and with the adapters merged.
#include "weights/merged_base.h"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "file_support.h"
#include "graph/builder.h"
#include "transform/adapt.h"
#include "weights/base_weights.h"
#include "weights/safetensors.h"

namespace thimble {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kWords = 3, kWidth = 5, kInner = 7, kRank = 2;

template <class T>
std::vector<T> drawn(int64_t count, uint32_t state, float size = 1) {
  std::vector<T> numbers;
  for (int64_t i = 0; i < count; ++i) {
    state = state * 1664525u + 1013904223u;
    numbers.push_back(static_cast<T>(size * (static_cast<float>(state >> 8) * 0x1p-23F - 1)));
  }
  return numbers;
}

template <class T>
TensorToWrite tensor(std::string name, const std::vector<T>& numbers, TensorType type) {
  return {std::move(name), type, std::as_bytes(std::span(numbers))};
}

template <class T>
std::vector<T> stored(const std::string& path, const std::string& name) {
  const SafetensorsFile file(path);
  std::vector<T> numbers(static_cast<size_t>(file.at(name).type.elements()));
  file.read_into(name, std::as_writable_bytes(std::span(numbers)));
  return numbers;
}

// up [inner, width] in bf16, down [inner, width] read as [in, out] in f32; their base in two
// shards, with a tensor that no model reads, and a checkpoint's adapters.
class Merged : public testing::Test {
 protected:
  void SetUp() override {
    Builder b(graph_);
    const ValueId x = b.input("x", {{2, kWidth}});
    const ValueId up = b.weight("up.weight", {{kInner, kWidth}}, {});
    const ValueId down = b.weight("down.weight", {{kInner, kWidth}}, {});
    const Attrs turned = {{"transpose_a", int64_t{0}}, {"transpose_b", int64_t{1}}};
    const Attrs plain = {{"transpose_a", int64_t{0}}, {"transpose_b", int64_t{0}}};
    graph_.results = {b.op("matmul", {b.op("matmul", {x, up}, turned), down}, plain)};
    ValueId rng;
    adapt(graph_, spec_, rng);
    for (const char* layer : {"up", "down"}) {
      const bool is_up = layer[0] == 'u';
      const int64_t in = is_up ? kWidth : kInner, out = is_up ? kInner : kWidth;
      a_[is_up] = drawn<float>(kRank * in, is_up ? 11 : 12);
      b_[is_up] = drawn<float>(out * kRank, is_up ? 13 : 14);
    }
    const std::vector<TensorToWrite> adapters = {
        tensor("up.lora_A.weight", a_[1], {{kRank, kWidth}}),
        tensor("up.lora_B.weight", b_[1], {{kInner, kRank}}),
        tensor("down.lora_A.weight", a_[0], {{kRank, kInner}}),
        tensor("down.lora_B.weight", b_[0], {{kWidth, kRank}})};
    write_safetensors(folder_ / "adapters.safetensors", adapters);
    ensure_directory(folder_ / "base");
    const std::vector<TensorToWrite> first = {
        tensor("up.weight", up_, {{kInner, kWidth}, DType::bf16}),
        tensor("other", other_, {{kWords}, DType::i64})};
    const std::vector<TensorToWrite> second = {tensor("down.weight", down_, {{kInner, kWidth}})};
    write_safetensors(folder_ / "base/a.safetensors", first, {{"format", "pt"}});
    write_safetensors(folder_ / "base/b.safetensors", second);
    spill(index(), R"({"weight_map":{"up.weight":"a.safetensors","other":"a.safetensors",)"
                   R"("down.weight":"b.safetensors"}})");
    spill(folder_ / "base/config.json", "{\"model_type\":\"llama\"}");
    spill(folder_ / "base/notes.md", "not copied");
  }

  std::string index() const { return folder_ / "base/model.safetensors.index.json"; }
  AdaptedBase base() const {
    return {graph_, foreign_, spec_, index(), folder_ / "adapters.safetensors"};
  }
  // Number [r, c] of what is added to [out, in].
  double added(bool is_up, int64_t r, int64_t c) const {
    const int64_t in = is_up ? kWidth : kInner;
    double sum = 0;
    for (int64_t k = 0; k < kRank; ++k) {
      sum += static_cast<double>(b_[is_up][static_cast<size_t>(r * kRank + k)]) *
             static_cast<double>(a_[is_up][static_cast<size_t>(k * in + c)]);
    }
    return spec_.scale() * sum;
  }

  const TemporaryFolder folder_;
  const AdapterSpec spec_ = {.rank = kRank, .alpha = 3};
  const std::optional<ForeignNames> foreign_;
  const std::vector<BFloat16> up_ = drawn<BFloat16>(kInner * kWidth, 1);
  const std::vector<float> down_ = drawn<float>(kInner * kWidth, 2);
  const std::vector<int64_t> other_ = {5, -6, 7};
  Graph graph_;
  std::vector<float> a_[2], b_[2];
};

TEST_F(Merged, WeightsAreSummedAndRoundedOnceAndTheRestIsCopied) {
  EXPECT_EQ(merge_adapters(base(), folder_ / "merged"), 2);
  const auto up = stored<BFloat16>(folder_ / "merged/a.safetensors", "up.weight");
  const auto down = stored<float>(folder_ / "merged/b.safetensors", "down.weight");
  for (int64_t r = 0; r < kInner; ++r) {
    for (int64_t c = 0; c < kWidth; ++c) {
      const auto at = static_cast<size_t>(r * kWidth + c);
      const double exact = static_cast<float>(up_[at]) + added(true, r, c);
      // Half a step of bf16, and what f32 makes of the sum before.
      EXPECT_NEAR(static_cast<float>(up[at]), exact, 0x1.01p-8 * std::abs(exact)) << r << " " << c;
      const double sum = down_[at] + added(false, c, r);
      EXPECT_NEAR(down[at], sum, 0x1p-22) << r << " " << c;  // roundings of numbers below 4
    }
  }
  EXPECT_EQ(stored<int64_t>(folder_ / "merged/a.safetensors", "other"), other_);
  EXPECT_EQ(SafetensorsFile(folder_ / "merged/a.safetensors").metadata().at("format"), "pt");
  EXPECT_EQ(slurp(folder_ / "merged/model.safetensors.index.json"), slurp(index()));
  EXPECT_EQ(slurp(folder_ / "merged/config.json"), slurp(folder_ / "base/config.json"));
  EXPECT_FALSE(fs::exists(folder_ / "merged/notes.md"));
}

TEST_F(Merged, NothingIsLeftOfWhatCannotBeMerged) {
  const auto refused = [&](const std::string& why, const std::string& to) {
    EXPECT_TRUE(throws_saying<UserError>([&] { merge_adapters(base(), folder_ / to); }, why));
  };
  ensure_directory(folder_ / "there");
  refused("there already", "there");
  const auto largest = std::vector<float>(kInner * kWidth, 3.4e38F);
  const std::vector<TensorToWrite> beyond = {tensor("down.weight", largest, {{kInner, kWidth}})};
  for (float& number : b_[0]) number = 3e38F;
  const std::vector<TensorToWrite> adapters = {
      tensor("up.lora_A.weight", a_[1], {{kRank, kWidth}}),
      tensor("up.lora_B.weight", b_[1], {{kInner, kRank}}),
      tensor("down.lora_A.weight", a_[0], {{kRank, kInner}}),
      tensor("down.lora_B.weight", b_[0], {{kWidth, kRank}})};
  write_safetensors(folder_ / "adapters.safetensors", adapters);
  write_safetensors(folder_ / "base/b.safetensors", beyond);
  refused("beyond f32", "merged");
  const std::vector<TensorToWrite> other = {tensor("down.weight", down_, {{kWidth, kInner}})};
  write_safetensors(folder_ / "base/b.safetensors", other);
  refused("another base", "merged");
  EXPECT_FALSE(fs::exists(folder_ / "merged"));
  EXPECT_FALSE(fs::exists(folder_ / "merged.partial"));
}

TEST_F(Merged, ABaseIsKnownByTheBytesOfAllItsShards) {
  const nlohmann::json described = describe_base(index());
  EXPECT_EQ(described["shards"].size(), 2u);
  EXPECT_EQ(base_file(described, "run"), index());
  const std::string shard = folder_ / "base/b.safetensors";
  const std::string before = slurp(shard);
  std::string after = before;
  after.back() = static_cast<char>(after.back() ^ 1);
  spill(shard, after);
  EXPECT_TRUE(throws_saying<UserError>([&] { base_file(described, "run"); }, "b.safetensors",
                                       "changed since"));
  fs::remove(shard);
  EXPECT_TRUE(
      throws_saying<UserError>([&] { base_file(described, "run"); }, "b.safetensors", "not there"));
  spill(shard, before);
  EXPECT_EQ(base_file(described, "run"), index());
}

}  // namespace
}  // namespace thimble
