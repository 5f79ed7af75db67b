// Weights from files that other programs wrote: types that differ, tensors that nobody asked for.
#include "weights/weights_file.h"

#include <gtest/gtest.h>

#include <cstring>

#include "../file_support.h"
#include "base/error.h"
#include "support/runs.h"
#include "weights/safetensors.h"

namespace thimble {
namespace {

RunSetup run_in(DType storage) {
  RunSetup run = mlp_run();
  run.model.storage = storage;
  return run;
}

// The model's weights as a file whose elements are of type `dtype`, each `factor` times itself.
template <class T>
void write_as(const std::string& path, Program& program, DType dtype, double factor = 1) {
  std::vector<std::vector<T>> numbers;
  std::vector<TensorToWrite> tensors;
  const Graph& graph = program.graph();
  numbers.reserve(graph.values.size());
  for (size_t v = 0; v < graph.values.size(); ++v) {
    const Value& value = graph.values[v];
    if (value.producer.valid() || value.role != Role::weight) continue;
    std::vector<T>& of_one = numbers.emplace_back();
    for (const float number : program.view<float>(make_id<ValueId>(v))) {
      of_one.push_back(T(static_cast<double>(number) * factor));
    }
    tensors.push_back(
        {value.name, {value.type.shape, dtype}, std::as_bytes(std::span(of_one)), {}});
  }
  write_safetensors(path, tensors);
}

TEST(WeightsFile, OtherFloatingTypesAreConvertedAndItIsSaid) {
  const TemporaryFolder folder;
  TrainingRun source(run_in(DType::f32), {.steps = 1, .evaluate = false});
  write_as<double>(folder / "f64", source.program(), DType::f64);
  write_as<Half>(folder / "f16", source.program(), DType::f16);
  write_as<float>(folder / "f32", source.program(), DType::f32);

  RunSetup other = run_in(DType::f32);
  other.seed = 77;
  TrainingRun wide(other, {.steps = 1, .evaluate = false});
  EXPECT_EQ(load_weights(folder / "f32", wide.program()), "");
  const std::string exact = weights_sha256(wide.program());
  TrainingRun again(other, {.steps = 1, .evaluate = false});
  EXPECT_EQ(load_weights(folder / "f64", again.program()), "6 tensors of f64 became f32");
  EXPECT_EQ(weights_sha256(again.program()), exact);  // doubles of floats: nothing is lost

  // Through fp16 and back: each number is what rounding once makes of it.
  EXPECT_EQ(load_weights(folder / "f16", again.program()), "6 tensors of f16 became f32");
  const ValueId weight = again.program().graph().find("hidden1.weight");
  const auto rounded = again.program().view<float>(weight);
  const auto original = source.program().view<float>(weight);
  for (size_t i = 0; i < rounded.size(); ++i) {
    ASSERT_EQ(rounded[i], static_cast<float>(Half(original[i])));
  }

  TrainingRun narrow(run_in(DType::f16), {.steps = 1, .evaluate = false});
  EXPECT_EQ(load_weights(folder / "f32", narrow.program()), "6 tensors of f32 became f16");
  write_as<float>(folder / "huge", source.program(), DType::f32, 1e9);
  EXPECT_TRUE(throws_saying<UserError>([&] { load_weights(folder / "huge", narrow.program()); },
                                       "beyond f16", "bf16"));
}

TEST(WeightsFile, OfOtherShapesOrNumbersThatAreNoneAreRefused) {
  const TemporaryFolder folder;
  TrainingRun source(run_in(DType::f32), {.steps = 1, .evaluate = false});
  write_as<int32_t>(folder / "i32", source.program(), DType::i32);
  EXPECT_TRUE(throws_saying<UserError>([&] { load_weights(folder / "i32", source.program()); },
                                       "i32", "F16 and BF16 can be converted"));
}

TEST(WeightsFile, TensorsOfTypesThatAreNotReadAreIgnored) {
  const TemporaryFolder folder;
  const std::string header = R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},)"
                             R"("b":{"dtype":"I16","shape":[3],"data_offsets":[4,10]},)"
                             R"("c":{"dtype":"BOOL","shape":[],"data_offsets":[10,11]}})";
  std::string bytes(8, '\0');
  bytes[0] = static_cast<char>(header.size());
  spill(folder / "w", bytes + header + "01234567890");
  const SafetensorsFile file(folder / "w");
  EXPECT_EQ(file.tensors().size(), 1u);
  EXPECT_NE(file.find("a"), nullptr);
  EXPECT_EQ(file.find("b"), nullptr);
  EXPECT_TRUE(throws_saying<UserError>([&] { file.at("b"); }, "'b' as I16", "store it as F32"));
  // Their bytes are checked like everyone's.
  std::string wrong = header;
  wrong.replace(wrong.find("[3]"), 3, "[4]");
  spill(folder / "w", bytes + wrong + "01234567890");
  EXPECT_THROW(SafetensorsFile(folder / "w"), UserError);
}

}  // namespace
}  // namespace thimble
