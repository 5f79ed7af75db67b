#include "transform/codec_json.h"

namespace thimble {

nlohmann::json to_json(const CodecSpec& spec) {
  nlohmann::json json = {{"codec", to_string(spec)}, {"codec_only", spec.only}};
  if (!spec.chosen) return json;
  nlohmann::json& chosen = json["codec_chosen"] = nlohmann::json::object();
  for (const ValueCodec& entry : *spec.chosen) chosen[entry.value] = name_of(entry.codec);
  return json;
}

CodecSpec codec_from_json(const nlohmann::json& json) {
  CodecSpec spec = parse_codec_spec(json.at("codec").get<std::string>());
  spec.only = json.at("codec_only").get<std::vector<std::string>>();
  if (!json.contains("codec_chosen")) return spec;
  spec.chosen.emplace();
  for (const auto& [value, codec] : json.at("codec_chosen").items()) {
    spec.chosen->push_back({value, parse_codec(codec.get<std::string>())});
  }
  return spec;
}

}  // namespace thimble
