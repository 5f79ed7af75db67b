#include "weights/adapter_file.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/io/file.h"
#include "base/io/json.h"
#include "weights/named_adapters.h"
#include "weights/safetensors.h"

namespace thimble {
namespace {

constexpr const char* kConfig = "/adapter_config.json";
constexpr const char* kTensors = "/adapter_model.safetensors";
constexpr std::string_view kPrefix = "base_model.model.";

std::string key_of(const NamedAdapter& named, std::string_view part) {
  return fmt::format("{}{}.{}.weight", kPrefix, named.module, part);
}

// The factor between A and B.
double scale_of(const Graph& graph, const Adapter& adapter) {
  std::vector<bool> follows(graph.values.size(), false);
  follows[adapter.a.at()] = true;
  for (const Node& node : graph.nodes) {
    const bool reads = std::ranges::any_of(node.inputs, [&](ValueId v) { return follows[v.at()]; });
    if (!reads || node.backward) continue;
    if (node.attrs.has("factor")) return node.attrs.real("factor");
    follows[node.outputs[0].at()] = true;
  }
  return 1;
}

// Settings of PEFT that change what an adapter computes, and that no adapter here has.
void check_kind(const nlohmann::json& config, const std::string& path) {
  const auto refuse = [&](const char* key, const nlohmann::json& usual) {
    const nlohmann::json found = config.value(key, nlohmann::json());
    const bool none = (found.is_object() || found.is_array()) && found.empty();
    user_check(found.is_null() || found == usual || none,
               "'{}' has {} = {}, which is not built in; wrap the module with PEFT and import it",
               path, key, found.dump());
  };
  user_check(config.value("peft_type", nlohmann::json()) == "LORA",
             "'{}' is no LoRA adapter but {}", path,
             config.value("peft_type", nlohmann::json()).dump());
  refuse("use_dora", false);
  refuse("bias", "none");
  for (const char* key : {"modules_to_save", "rank_pattern", "alpha_pattern", "layer_replication",
                          "megatron_config", "trainable_token_indices", "target_parameters"}) {
    refuse(key, nlohmann::json());
  }
}

void check_tensor(const SafetensorsFile& file, const Graph& graph, const NamedAdapter& named,
                  std::string_view part, ValueId value) {
  const StoredTensor* const stored = file.find(key_of(named, part));
  user_check(stored != nullptr,
             "'{}' has no adapter of '{}': it is of another base or other targets", file.path(),
             named.module);
  user_check(stored->type.shape == graph[value].type.shape,
             "'{}': {} of '{}' is {}, not {}: it is of another base or rank", file.path(), part,
             named.module, to_string(stored->type), to_string(graph[value].type));
  user_check(is_floating(stored->type.dtype), "'{}': {} of '{}' is {}", file.path(), part,
             named.module, to_string(stored->type));
}

void load_tensor(const SafetensorsFile& file, const std::string& key, Program& program,
                 ValueId value) {
  const std::vector<float> numbers = numbers_of(file, key);
  program.write(value, 0, std::as_bytes(std::span(numbers)));
}

}  // namespace

bool is_adapter_folder(const std::string& path) { return exists(path + kConfig); }

void save_adapters(const std::string& folder, Program& program, const AdapterSpec& spec,
                   const std::optional<ForeignNames>& foreign, const std::string& base) {
  const Graph& graph = program.graph();
  const std::vector<NamedAdapter> all = named_adapters(graph, foreign);
  std::vector<TensorToWrite> tensors;
  nlohmann::json targets = nlohmann::json::array();
  const bool in_first = std::ranges::any_of(all, &NamedAdapter::in_first);  // Conv1D of GPT-2
  for (const NamedAdapter& named : all) {
    targets.push_back(named.module);
    for (const auto& [part, value] :
         {std::pair("lora_A", named.adapter.a), {"lora_B", named.adapter.b}}) {
      tensors.push_back({key_of(named, part),
                         graph[value].type,
                         {},
                         [&program, value = value](int64_t at, std::span<std::byte> out) {
                           program.read(value, at, out);
                         }});
    }
  }
  const nlohmann::json config = {{"peft_type", "LORA"},
                                 {"base_model_name_or_path", base},
                                 {"r", spec.rank},
                                 {"lora_alpha", spec.alpha},
                                 {"lora_dropout", spec.dropout},
                                 {"use_rslora", spec.rank_stabilised},
                                 {"use_dora", false},
                                 {"target_modules", targets},
                                 {"bias", "none"},
                                 {"fan_in_fan_out", in_first},
                                 {"init_lora_weights", true},
                                 {"inference_mode", true},
                                 {"modules_to_save", nullptr},
                                 {"task_type", nullptr}};
  ensure_directory(folder);
  write_safetensors(folder + kTensors, tensors, {{"format", "pt"}});
  write_file(folder + kConfig, json_text(config, 2) + "\n");
}

void load_adapters(const std::string& folder, Program& program,
                   const std::optional<ForeignNames>& foreign) {
  const Graph& graph = program.graph();
  const nlohmann::json config = read_json(folder + kConfig, "an adapter's settings");
  user_check(config.is_object(), "'{}{}' is no object of settings", folder, kConfig);
  check_kind(config, folder + kConfig);
  const std::vector<NamedAdapter> all = named_adapters(graph, foreign);
  const SafetensorsFile file(folder + kTensors);
  const auto number = [&](const char* key) {
    user_check(config.contains(key) && config[key].is_number(), "'{}{}' has no number {}", folder,
               kConfig, key);
    return config[key].get<double>();
  };
  const double rank = number("r"), alpha = number("lora_alpha");
  const bool stable = config.value("use_rslora", nlohmann::json(false)) == true;
  const double scale = alpha / (stable ? std::sqrt(rank) : rank);
  for (const NamedAdapter& named : all) {
    check_tensor(file, graph, named, "lora_A", named.adapter.a);
    check_tensor(file, graph, named, "lora_B", named.adapter.b);
    const double own = scale_of(graph, named.adapter);
    user_check(
        std::abs(own - scale) <= 1e-6 * scale,
        "'{}{}' scales its adapters by {:g}, and --lora by {:g}; choose rank={:g},alpha={:g}{}",
        folder, kConfig, scale, own, rank, alpha, stable ? ",rs" : "");
  }
  user_check(file.tensors().size() == 2 * all.size(),
             "'{}' has {} tensors, and {} of them are of this model's targets; choose the targets "
             "that it was trained with",
             file.path(), file.tensors().size(), 2 * all.size());
  for (const NamedAdapter& named : all) {
    load_tensor(file, key_of(named, "lora_A"), program, named.adapter.a);
    load_tensor(file, key_of(named, "lora_B"), program, named.adapter.b);
  }
}

}  // namespace thimble
