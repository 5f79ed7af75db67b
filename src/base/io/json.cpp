#include "base/io/json.h"

#include <algorithm>
#include <set>
#include <vector>

#include "base/error.h"
#include "base/io/file.h"

namespace thimble {
namespace {

// How deep lists and objects are nested, up to where the text stops being JSON: a parser that meets
// the fault gets no further.
int depth_of(std::string_view text) {
  int depth = 0, deepest = 0;
  bool quoted = false;
  for (size_t at = 0; at < text.size(); ++at) {
    const char c = text[at];
    if (c == '"') quoted = !quoted;
    if (quoted) {
      if (c == '\\') ++at;
    } else if (c == '[' || c == '{') {
      deepest = std::max(deepest, ++depth);
    } else if (c == ']' || c == '}') {
      --depth;
    }
  }
  return deepest;
}

// Told of every key, in its order; UserError where an object has one twice.
class NoKeyTwice {
 public:
  bool operator()(int, nlohmann::json::parse_event_t event, nlohmann::json& parsed) {
    using Event = nlohmann::json::parse_event_t;
    if (event == Event::object_start) open_.emplace_back();
    if (event == Event::object_end) open_.pop_back();
    if (event == Event::key) {
      const auto& key = parsed.get_ref<const std::string&>();
      user_check(open_.back().insert(key).second, "it says '{}' twice", key);
    }
    return true;
  }

 private:
  std::vector<std::set<std::string>> open_;  // keys of the objects that it is in
};

}  // namespace

nlohmann::json parse_json(std::string_view text) {
  user_check(depth_of(text) <= kDeepestJson, "its lists and objects are nested more than {} deep",
             kDeepestJson);
  try {
    return nlohmann::json::parse(text, NoKeyTwice());
  } catch (const nlohmann::json::parse_error& error) {
    user_error("it is no well-formed JSON near byte {}", error.byte);
  } catch (const nlohmann::json::exception&) {
    user_error("it has a number that is beyond any range");
  }
}

nlohmann::json read_json(const std::string& path, std::string_view what, Bytes most) {
  const std::string text = read_text(path, what, most);
  try {
    return parse_json(text);
  } catch (const UserError& fault) {
    user_error("'{}' is not {}: {}; check the path or get a fresh copy of it", path, what,
               fault.what());
  }
}

std::string why_refused(const nlohmann::json::exception& error) {
  const std::string_view said = error.what();  // "[json.exception.type_error.302] type must be ..."
  const size_t end = said.starts_with('[') ? said.find("] ") : std::string_view::npos;
  return std::string(end == std::string_view::npos ? said : said.substr(end + 2));
}

std::string json_text(const nlohmann::json& json, int indent) {
  return json.dump(indent, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace thimble
