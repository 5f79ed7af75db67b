#include "model/zoo/decoder_config.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <numbers>

#include "base/error.h"
#include "base/io/json.h"

namespace thimble {
namespace {

using nlohmann::json;

constexpr std::array<std::string_view, 6> kTypes = {"llama", "mistral", "qwen2",
                                                    "qwen3", "smollm3", "gemma"};
constexpr int64_t kMost = int64_t{1} << 24;

class Reader {
 public:
  explicit Reader(std::string path)
      : path_(std::move(path)), config_(read_json(path_, "a decoder's configuration")) {
    user_check(config_.is_object(), "'{}' is no configuration: it is no object", path_);
  }

  DecoderConfig read() {
    DecoderConfig c;
    c.type = text("model_type", "");
    user_check(std::ranges::find(kTypes, c.type) != kTypes.end(),
               "'{}' is of the type '{}'; a folder of llama, mistral, qwen2, qwen3, smollm3 or "
               "gemma can be read, others by thimble.torch.export",
               path_, c.type);
    const bool gemma = c.type == "gemma";
    c.layers = whole("num_hidden_layers");
    c.width = whole("hidden_size");
    c.inner = whole("intermediate_size");
    c.vocabulary = whole("vocab_size");
    c.heads = whole("num_attention_heads");
    c.groups = whole("num_key_value_heads", c.heads);
    c.head_size = whole("head_dim", gemma ? 256 : c.width / c.heads);
    c.longest = whole("max_position_embeddings", 2048);
    c.epsilon = real("rms_norm_eps", 1e-6);
    c.padding = config_.contains("pad_token_id") && config_["pad_token_id"].is_number_integer()
                    ? config_["pad_token_id"].get<int64_t>()
                    : -1;
    user_check(c.heads % c.groups == 0 && c.head_size % 2 == 0,
               "'{}': {} heads of {} numbers do not share {} of keys", path_, c.heads, c.head_size,
               c.groups);
    user_check(c.epsilon > 0, "'{}': its rms_norm_eps is {}, not above 0", path_, c.epsilon);
    c.tied = flag("tie_word_embeddings", gemma || c.type == "smollm3");
    const bool biased = flag("attention_bias", false);
    c.qkv_bias = c.type == "qwen2" || biased;
    c.out_bias = c.type != "qwen2" && biased;
    c.inner_bias = flag("mlp_bias", false);
    c.head_norms = c.type == "qwen3";
    c.scales_plus_one = gemma;
    c.act = activation(gemma);
    read_window();
    read_positions(c);
    read_turned(c);
    return c;
  }

 private:
  bool says(const char* name) const { return config_.contains(name) && !config_[name].is_null(); }

  std::string text(const char* name, const char* usual) const {
    if (!says(name)) return usual;
    user_check(config_[name].is_string(), "'{}': its {} is no text", path_, name);
    return config_[name].get<std::string>();
  }
  bool flag(const char* name, bool usual) const {
    if (!says(name)) return usual;
    user_check(config_[name].is_boolean(), "'{}': its {} is neither true nor false", path_, name);
    return config_[name].get<bool>();
  }
  int64_t whole(const char* name, int64_t usual = 0) const {
    if (!says(name) && usual > 0) return usual;
    const bool fine = says(name) && config_[name].is_number_integer() &&
                      config_[name].get<int64_t>() >= 1 && config_[name].get<int64_t>() <= kMost;
    user_check(fine, "'{}': its {} is no whole number between 1 and {}", path_, name, kMost);
    return config_[name].get<int64_t>();
  }
  double real(const char* name, double usual) const { return real_of(config_, name, usual); }
  double real_of(const json& from, const char* name, double usual) const {
    if (!from.contains(name) || from[name].is_null()) return usual;
    user_check(from[name].is_number() && std::isfinite(from[name].get<double>()),
               "'{}': its {} is no number", path_, name);
    return from[name].get<double>();
  }

  std::string activation(bool gemma) const {
    std::string name = text("hidden_act", "silu");
    // Gemma's files say gelu, and its code has meant the approximation ever since.
    if (gemma) name = text("hidden_activation", "gelu_pytorch_tanh");
    if (name == "silu") return "silu";
    if (name == "gelu_pytorch_tanh") return "gelu_tanh";
    user_check(name == "gelu", "'{}': its gate is '{}'; silu, gelu and gelu_pytorch_tanh can be",
               path_, name);
    return "gelu";
  }

  void read_window() const {
    const bool used = flag("use_sliding_window", says("sliding_window"));
    user_check(!used || !says("sliding_window"),
               "'{}': its attention sees a window of {} tokens, which attention here does not "
               "have; train it by thimble.torch.export",
               path_, config_.value("sliding_window", json()).dump());
  }

  // Newer files keep base and scaling together.
  void read_positions(DecoderConfig& c) const {
    const char* const name = says("rope_parameters") ? "rope_parameters" : "rope_scaling";
    const json scaling = says(name) ? config_[name] : json::object();
    user_check(scaling.is_object(), "'{}': its {} is no object", path_, name);
    c.base = real_of(scaling, "rope_theta", real("rope_theta", 10000));
    user_check(c.base > 0, "'{}': its rope_theta is {}, not above 0", path_, c.base);
    const auto kind = [&](const char* key) {
      return scaling.contains(key) && scaling[key].is_string() ? scaling[key].get<std::string>()
                                                               : "";
    };
    const std::string type = !kind("rope_type").empty() ? kind("rope_type") : kind("type");
    if (type.empty() || type == "default") return;
    const double factor = real_of(scaling, "factor", 1);
    user_check(factor > 0, "'{}': its positions are scaled by {}", path_, factor);
    c.frequency_divisors.assign(static_cast<size_t>(c.head_size / 2), factor);
    if (type == "linear") return;
    user_check(type == "llama3",
               "'{}': its positions are scaled by '{}'; default, linear and llama3 can be, others "
               "by thimble.torch.export",
               path_, type);
    const double low = real_of(scaling, "low_freq_factor", 1);
    const double high = real_of(scaling, "high_freq_factor", 4);
    const double before = real_of(scaling, "original_max_position_embeddings", 8192);
    user_check(high > low && low > 0 && before > 0, "'{}': its {} makes no sense", path_, name);
    for (size_t d = 0; d < c.frequency_divisors.size(); ++d) {
      const double share = 2 * static_cast<double>(d) / static_cast<double>(c.head_size);
      const double length = 2 * std::numbers::pi * std::pow(c.base, share);
      const double smooth = std::clamp((before / length - low) / (high - low), 0.0, 1.0);
      c.frequency_divisors[d] = 1 / ((1 - smooth) / factor + smooth);
    }
  }

  void read_turned(DecoderConfig& c) const {
    if (c.type != "smollm3") return;
    for (int64_t layer = 0; layer < c.layers; ++layer) {
      bool turned = (layer + 1) % whole("no_rope_layer_interval", 4) != 0;
      if (says("no_rope_layers")) {
        const json& list = config_["no_rope_layers"];
        user_check(list.is_array() && std::ssize(list) == c.layers &&
                       list[static_cast<size_t>(layer)].is_number_integer(),
                   "'{}': its no_rope_layers is no list of {} numbers", path_, c.layers);
        turned = list[static_cast<size_t>(layer)].get<int64_t>() != 0;
      }
      c.turned.push_back(turned);
    }
  }

  const std::string path_;
  const json config_;
};

}  // namespace

DecoderConfig read_decoder(const std::string& folder) {
  DecoderConfig config = Reader(folder + "/config.json").read();
  const std::string whole = folder + "/model.safetensors", index = whole + ".index.json";
  config.weights = std::filesystem::exists(index) ? index : whole;
  return config;
}

}  // namespace thimble
