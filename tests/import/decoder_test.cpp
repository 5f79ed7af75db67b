// hf:FOLDER against what fusing makes of the same net from thimble.torch.export: the same ops, settings
// and types, node for node, from the embedding to the last norm; and folders that are not as they should
// be.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <map>

#include "base/error.h"
#include "file_support.h"
#include "graph/builder.h"
#include "import/imported_runs.h"
#include "recipe/settings.h"
#include "weights/safetensors.h"

namespace thimble {
namespace {

const std::map<std::string, std::string>& configs() {
  static const std::string shared =
      R"("vocab_size":64,"hidden_size":32,"num_hidden_layers":2,"num_attention_heads":4,)"
      R"("intermediate_size":48,"max_position_embeddings":32,"rms_norm_eps":1e-6)";
  static const std::map<std::string, std::string> configs = {
      {"llama", R"("model_type":"llama","num_key_value_heads":2,)" + shared},
      {"qwen2", R"("model_type":"qwen2","num_key_value_heads":2,)" + shared},
      {"qwen3", R"("model_type":"qwen3","num_key_value_heads":2,"head_dim":8,)" + shared},
      {"mistral",
       R"("model_type":"mistral","num_key_value_heads":2,"sliding_window":null,)" + shared},
      {"gemma",
       R"("model_type":"gemma","num_key_value_heads":1,"head_dim":8,"pad_token_id":0,)" + shared},
  };
  return configs;
}

struct Folder : TemporaryFolder {
  explicit Folder(const std::string& config) { write("config.json", "{" + config + "}"); }
  void write(const std::string& name, const std::string& text) const { spill(*this / name, text); }
  std::string model() const { return "hf:" + path(); }
};

// Nodes that compute something, each as its op, its settings and what it makes and reads: nodes by
// their number, sources by type. From the embedding to what the loss reads.
std::vector<std::string> spelt(const Graph& graph) {
  std::map<ValueId, std::string> known;
  std::vector<std::string> lines;
  const auto name_of_value = [&](ValueId value) {
    while (graph[value].producer.valid() && graph[graph[value].producer].op->view) {
      value = graph[graph[value].producer].inputs[0];
    }
    if (known.contains(value)) return known.at(value);
    const Value& source = graph[value];
    const bool table = source.role == Role::frozen || source.role == Role::statistic;
    return table ? "table" : to_string(source.type);
  };
  for (const Node& node : graph.nodes) {
    if (node.op->view) continue;
    if (node.op->name == "vocabulary_loss") {
      lines.push_back("loss of " + name_of_value(node.inputs[0]) + " by " +
                      name_of_value(node.inputs[1]));
      break;
    }
    bool follows = node.op->name == "embed";
    for (const ValueId input : node.inputs) {
      follows = follows || known.contains(input) || graph[input].role == Role::weight ||
                name_of_value(input).starts_with("node");
    }
    if (!follows) continue;  // labels, moved by one place
    std::string line = std::string(node.op->name) + to_string(node.attrs) + "(";
    for (const ValueId input : node.inputs) line += name_of_value(input) + ", ";
    for (const ValueId output : node.outputs) {
      line += " -> " + fmt::format("{}", graph[output].type.elements());
      known[output] = fmt::format("node {}", lines.size());
    }
    lines.push_back(line);
  }
  return lines;
}

TEST(Decoder, IsTheFusedImportNodeForNode) {
  for (const auto& [net, config] : configs()) {
    const Folder folder(config);
    const Model native = build_model({.name = folder.model() + ":length=16", .batch = 2});
    const Model imported = build_model({.name = kNets + "/fused/" + net + ".json", .batch = 2});
    EXPECT_EQ(spelt(native.graph), spelt(imported.graph)) << net;
  }
}

// Random numbers for every weight, in one file or two.
std::vector<TensorToWrite> weights_of(const Model& model, std::vector<std::vector<float>>& room) {
  std::vector<TensorToWrite> tensors;
  for (const Value& value : model.graph.values) {
    if (value.role != Role::weight) continue;
    std::vector<float>& numbers = room.emplace_back();
    for (int64_t i = 0; i < value.type.elements(); ++i) {
      numbers.push_back(static_cast<float>(0.1 * std::sin(static_cast<double>(i * 13 + 1))));
    }
  }
  size_t next = 0;
  for (const Value& value : model.graph.values) {
    if (value.role != Role::weight) continue;
    tensors.push_back({value.name, value.type, std::as_bytes(std::span(room[next++]))});
  }
  return tensors;
}

Recipe recipe_for(const Folder& folder) {
  Recipe recipe;
  recipe.model.name = folder.model();
  recipe.model.batch = 2;
  recipe.model.length = 16;
  recipe.optimizer = parse_optimizer("adamw");
  recipe.schedule = {.steps = 2, .rate = 1e-3, .kind = RateSchedule::Kind::constant};
  recipe.on.threads = 1;
  recipe.evaluate = false;
  return recipe;
}

TEST(Decoder, ShardsAreOneFile) {
  const Folder folder(configs().at("llama"));
  const Model model = build_model({.name = folder.model(), .batch = 2});
  std::vector<std::vector<float>> room;
  const std::vector<TensorToWrite> tensors = weights_of(model, room);
  write_safetensors(folder.path() + "/model.safetensors", tensors);
  const Ended whole = train(recipe_for(folder));

  const std::span all(tensors);
  const size_t half = tensors.size() / 2;
  write_safetensors(folder.path() + "/a.safetensors", all.first(half));
  write_safetensors(folder.path() + "/b.safetensors", all.subspan(half));
  std::string map;
  for (size_t i = 0; i < tensors.size(); ++i) {
    map += fmt::format("{}\"{}\":\"{}.safetensors\"", i == 0 ? "" : ",", tensors[i].name,
                       i < half ? "a" : "b");
  }
  std::filesystem::remove(folder.path() + "/model.safetensors");
  folder.write("model.safetensors.index.json", "{\"weight_map\":{" + map + "}}");
  const Ended shards = train(recipe_for(folder));
  EXPECT_EQ(shards.losses, whole.losses);
  EXPECT_EQ(shards.weights, whole.weights);

  // A shard that is cut, that is missing, and one that has not what the index says.
  std::filesystem::resize_file(folder.path() + "/b.safetensors", 1000);
  EXPECT_THROW(train(recipe_for(folder)), UserError);
  std::filesystem::remove(folder.path() + "/b.safetensors");
  const std::string missing = message_of<UserError>([&] { train(recipe_for(folder)); });
  EXPECT_NE(missing.find("b.safetensors', which is not there"), std::string::npos) << missing;
  std::filesystem::copy_file(folder.path() + "/a.safetensors", folder.path() + "/b.safetensors");
  const std::string fault = message_of<UserError>([&] { train(recipe_for(folder)); });
  EXPECT_NE(fault.find("b.safetensors"), std::string::npos) << fault;
}

TEST(Decoder, AFolderIsAName) {
  const Folder folder(configs().at("llama"));
  for (const std::string& typed : {folder.path(), folder.path() + "//", folder.path() + ":length=8",
                                   folder.model() + ":length=8"}) {
    Recipe recipe;
    configure(recipe, {{"model", typed}});
    EXPECT_EQ(recipe.model.name, folder.model()) << typed;
    EXPECT_EQ(recipe.model.length, typed.ends_with("8") ? 8 : 0) << typed;
  }
  const TemporaryFolder empty;
  const std::string fault =
      message_of<UserError>([&] { build_model({.name = empty.path(), .batch = 2}); });
  EXPECT_NE(fault.find("a folder without config.json"), std::string::npos) << fault;
}

TEST(Decoder, IsPlannedWithoutWeightsAndTrainedWithThem) {
  const Folder folder(configs().at("qwen2"));
  const Recipe recipe = recipe_for(folder);
  const Bytes planned = std::get<PlannedTraining>(plan_training(recipe)).plan().arena;
  const auto fault = [&] { return message_of<UserError>([&] { train(recipe); }); };
  EXPECT_NE(fault().find("model.safetensors', which has the weights of"), std::string::npos)
      << fault();
  folder.write("pytorch_model.bin", "");
  EXPECT_NE(fault().find("pytorch_model.bin' anew with save_pretrained"), std::string::npos)
      << fault();

  std::vector<std::vector<float>> room;
  write_safetensors(folder.path() + "/model.safetensors",
                    weights_of(build_model({.name = folder.model(), .batch = 2}), room));
  const Ended ended = train(recipe);
  EXPECT_EQ(ended.arena, planned);
  EXPECT_EQ(ended.measured, planned);
}

TEST(Decoder, RefusesATypeThatNobodyReads) {
  const Folder folder(configs().at("llama"));
  std::vector<std::vector<float>> room;
  write_safetensors(folder.path() + "/model.safetensors",
                    weights_of(build_model({.name = folder.model(), .batch = 2}), room));
  std::string bytes = slurp(folder.path() + "/model.safetensors");
  const size_t at = bytes.find("\"F32\"");
  ASSERT_NE(at, std::string::npos);
  bytes.replace(at, 5, "\"U32\"");  // as wide, so that the file is sound
  folder.write("model.safetensors", bytes);
  const std::string fault = message_of<UserError>([&] { train(recipe_for(folder)); });
  EXPECT_NE(fault.find("U32"), std::string::npos) << fault;
  EXPECT_NE(fault.find("model.safetensors"), std::string::npos) << fault;
}

TEST(Decoder, RefusesWhatItDoesNotBuild) {
  const std::string llama = configs().at("llama");
  const auto fault = [](const std::string& config) {
    const Folder folder(config);
    return message_of<UserError>([&] { build_model({.name = folder.model(), .batch = 2}); });
  };
  const std::map<std::string, std::string> faults = {
      {R"("model_type":"mamba")", "'mamba'"},
      {R"("model_type":"bert")", "thimble.torch.export"},
      {llama + R"(,"sliding_window":8)", "window"},
      {llama + R"(,"rope_scaling":{"rope_type":"yarn","factor":4})", "yarn"},
      {llama + R"(,"hidden_act":"relu")", "relu"},
      {llama + R"(,"head_dim":7)", "heads"},
      {R"("model_type":"llama")", "num_hidden_layers"},
  };
  for (const auto& [config, word] : faults) {
    EXPECT_NE(fault(config).find(word), std::string::npos) << config << ": " << fault(config);
  }
  EXPECT_EQ(fault(llama + R"(,"rope_scaling":{"rope_type":"llama3","factor":8})"), "");
}

}  // namespace
}  // namespace thimble
