// Reads a network file. Whatever it holds, what comes out is of sane size and refers to itself only.
#include <fmt/ranges.h>

#include <charconv>
#include <cmath>
#include <filesystem>
#include <set>

#include "base/error.h"
#include "base/io/json.h"
#include "import/net.h"

namespace thimble {
namespace {

using nlohmann::json;

constexpr int64_t kFormat = 1;
constexpr size_t kMostItems = 1 << 17;  // of any list of the file
constexpr size_t kLongestName = 1024;
constexpr size_t kLongestList = 1 << 12;  // of a setting
constexpr size_t kMostSpelt = 40;         // that are spelt out

// All faults of a file.
class Faults {
 public:
  explicit Faults(const std::string& path) : path_(path) {}

  template <class... Args>
  void add(fmt::format_string<Args...> format, Args&&... args) {
    if (++count_ <= kMostSpelt) texts_.push_back(fmt::format(format, std::forward<Args>(args)...));
  }
  bool any() const { return count_ > 0; }
  void raise() const {
    if (!any()) return;
    user_error("'{}' is not a network file: {}{}; write it anew with thimble.torch.export", path_,
               fmt::join(texts_, "; "),
               count_ > kMostSpelt ? fmt::format("; and {} more", count_ - kMostSpelt) : "");
  }

 private:
  const std::string& path_;
  std::vector<std::string> texts_;
  size_t count_ = 0;
};

class Reader {
 public:
  explicit Reader(const std::string& path) : faults_(path), path_(path) {}

  Net read() {
    const json file = read_json(path_, "a network file");
    const bool ours = file.is_object() && file.contains("thimble_network");
    user_check(ours,
               "'{}' is not a network file: it has no \"thimble_network\"; write one with "
               "thimble.torch.export",
               path_);
    const json& format = file["thimble_network"];
    user_check(
        format.is_number_integer() && format == kFormat,
        "'{}' is a network file of format {}, and this program reads format {}; write it anew "
        "with the thimble package of this version",
        path_, json_text(format).substr(0, 40), kFormat);
    Net net;
    net.name = text(file, "name", "the file", false);
    net.batch = whole(file, "batch", "the file", 1, 1, int64_t{1} << 24);
    net.weights = weights_path(text(file, "weights", "the file", true));
    each(file, "inputs", [&](const json& item) { net.inputs.push_back(input(item)); });
    each(file, "parameters", [&](const json& item) { net.parameters.push_back(parameter(item)); });
    each(file, "buffers", [&](const json& item) { net.buffers.push_back(tensor(item, "buffer")); });
    each(file, "constants",
         [&](const json& item) { net.constants.push_back(tensor(item, "constant")); });
    each(file, "groups", [&](const json& item) { net.groups.push_back(group(item)); });
    each(file, "nodes", [&](const json& item) { net.nodes.push_back(node(item)); });
    each(file, "outputs", [&](const json& item) {
      net.outputs.push_back(
          {text(item, "name", "an output", true), text(item, "value", "an output", true)});
    });
    net.loss = text(file, "loss", "the file", true);
    faults_.raise();
    check_names(net);
    faults_.raise();
    return net;
  }

 private:
  // Beside the network file, and nowhere else.
  std::string weights_path(const std::string& name) {
    if (name.find('/') != std::string::npos || name == ".." || name == ".") {
      faults_.add("its weights are '{}', not a file beside it", name);
    }
    return (std::filesystem::path(path_).parent_path() / name).string();
  }

  template <class Body>
  void each(const json& file, const char* name, const Body& body) {
    if (!file.contains(name)) return;
    const json& list = file[name];
    if (!list.is_array() || list.size() > kMostItems) {
      faults_.add("\"{}\" is no list of {} items at most", name, kMostItems);
      return;
    }
    for (const json& item : list) {
      if (item.is_object()) {
        body(item);
      } else {
        faults_.add("\"{}\" holds what is no object", name);
      }
    }
  }

  std::string text(const json& item, const char* key, std::string_view of, bool wanted) {
    if (!item.contains(key) && !wanted) return "";
    const bool fine = item.contains(key) && item[key].is_string();
    std::string value = fine ? item[key].get<std::string>() : "";
    if (!fine || value.size() > kLongestName || (wanted && value.empty()) ||
        value.find('\0') != std::string::npos) {
      faults_.add("{} has no \"{}\" that is a text of {} bytes at most", of, key, kLongestName);
      return "";
    }
    return value;
  }

  int64_t whole(const json& item, const char* key, std::string_view of, int64_t usual,
                int64_t least, int64_t most) {
    if (!item.contains(key)) return usual;
    const json& value = item[key];
    const bool fine = value.is_number_integer() && !value.is_number_float();
    if (!fine || value < least || value > most) {
      faults_.add("\"{}\" of {} is no whole number from {} to {}", key, of, least, most);
      return usual;
    }
    return value.get<int64_t>();
  }

  DType dtype(const json& item, std::string_view of) {
    if (!item.contains("dtype")) return DType::f32;
    const json& name = item["dtype"];
    for (const DType dtype : {DType::f32, DType::i32, DType::u8}) {
      if (name.is_string() && name == std::string(name_of(dtype))) return dtype;
    }
    faults_.add("{} is of the type {}; f32, i32 and u8 can be", of, json_text(name).substr(0, 40));
    return DType::f32;
  }

  // 7, "rows" or "rows*7".
  std::optional<Extent> extent(const json& item) {
    if (item.is_number_integer() && !item.is_number_float()) {
      if (item < 0 || item > (int64_t{1} << 40)) return std::nullopt;
      return Extent{item.get<int64_t>(), false};
    }
    if (!item.is_string()) return std::nullopt;
    const std::string& name = item.get_ref<const std::string&>();
    if (name == "rows") return Extent{1, true};
    Extent parsed = {0, true};
    if (!name.starts_with("rows*")) return std::nullopt;
    const char *begin = name.data() + 5, *end = name.data() + name.size();
    const auto [stop, error] = std::from_chars(begin, end, parsed.count);
    const bool fine = error == std::errc() && stop == end && parsed.count >= 1 &&
                      parsed.count <= (int64_t{1} << 40);
    return fine ? std::optional(parsed) : std::nullopt;
  }

  Extents extents(const json& list, std::string_view of) {
    Extents result;
    const bool fine = list.is_array() && list.size() <= Shape::kMaxRank;
    if (fine) {
      for (const json& item : list) {
        if (const auto one = extent(item)) result.push_back(*one);
      }
    }
    if (!fine || result.size() != list.size()) {
      faults_.add("the shape of {} is no list of {} sizes at most", of, Shape::kMaxRank);
    }
    return result;
  }

  // Of what does not depend on the rows.
  Shape fixed_shape(const json& item, std::string_view of) {
    const Extents all = extents(item.contains("shape") ? item["shape"] : json(), of);
    for (const Extent& one : all) {
      if (!one.of_rows) continue;
      faults_.add("the shape of {} depends on the rows", of);
      return {};
    }
    return checked_shape(all, of);
  }

  Shape checked_shape(const Extents& extents, std::string_view of) {
    try {
      return shape_for(extents, 1);
    } catch (const UserError& error) {
      faults_.add("{}: {}", of, error.what());
      return {};
    }
  }

  NetInput input(const json& item) {
    NetInput result;
    result.name = text(item, "name", "an input", true);
    result.dtype = dtype(item, "input '" + result.name + "'");
    result.shape = extents(item.contains("shape") ? item["shape"] : json(), result.name);
    const bool rows =
        !result.shape.empty() && result.shape[0].of_rows && result.shape[0].count == 1;
    bool others = false;
    for (size_t i = 1; i < result.shape.size(); ++i) others |= result.shape[i].of_rows;
    if (!rows || others) {
      faults_.add("input '{}' has no axis of rows, its first and no other", result.name);
    }
    checked_shape(result.shape, result.name);
    result.target = item.contains("target") && item["target"] == true;
    return result;
  }

  NetParameter parameter(const json& item) {
    NetParameter result;
    result.name = text(item, "name", "a parameter", true);
    result.shape = fixed_shape(item, "parameter '" + result.name + "'");
    result.trained = !item.contains("trained") || item["trained"] != false;
    result.group = static_cast<size_t>(
        whole(item, "group", "parameter '" + result.name + "'", 0, 0, int64_t{1} << 20));
    if (item.contains("also")) {
      const json& also = item["also"];
      if (!also.is_array() || also.size() > kLongestList) {
        faults_.add("\"also\" of parameter '{}' is no list of names", result.name);
        return result;
      }
      for (const json& name : also) {
        if (!name.is_string() || name.get_ref<const std::string&>().size() > kLongestName) {
          faults_.add("\"also\" of parameter '{}' is no list of names", result.name);
          return result;
        }
        result.also.push_back(name.get<std::string>());
      }
    }
    return result;
  }

  NetTensor tensor(const json& item, const char* what) {
    NetTensor result;
    result.name = text(item, "name", fmt::format("a {}", what), true);
    result.shape = fixed_shape(item, fmt::format("{} '{}'", what, result.name));
    result.dtype = dtype(item, fmt::format("{} '{}'", what, result.name));
    return result;
  }

  NetGroup group(const json& item) {
    NetGroup result;
    const auto number = [&](const char* key) -> std::optional<double> {
      if (!item.contains(key) || item[key].is_null()) return std::nullopt;
      const bool fine = item[key].is_number() && std::isfinite(item[key].get<double>()) &&
                        item[key].get<double>() >= 0;
      if (!fine) faults_.add("\"{}\" of a group is no number from 0 on", key);
      return fine ? std::optional(item[key].get<double>()) : std::nullopt;
    };
    result.rate = number("rate").value_or(1);
    result.decay = number("decay");
    return result;
  }

  NetNode node(const json& item) {
    NetNode result;
    result.op = text(item, "op", "a node", true);
    result.at = text(item, "at", "a node", false);
    const std::string of = "a node '" + result.op.substr(0, 60) + "'";
    for (const json& one : list(item, "in", of)) result.in.push_back(operand(one, of));
    for (const json& one : list(item, "out", of)) {
      const bool fine = one.is_string() && !one.get_ref<const std::string&>().empty() &&
                        one.get_ref<const std::string&>().size() <= kLongestName;
      if (!fine) faults_.add("{} makes what has no name", of);
      result.out.push_back(fine ? one.get<std::string>() : "");
    }
    for (const json& one : list(item, "shapes", of)) result.shapes.push_back(extents(one, of));
    if (result.out.empty() || result.shapes.size() != result.out.size()) {
      faults_.add("{} makes nothing, or does not say the shape of it", of);
    }
    if (item.contains("attrs")) read_attrs(item["attrs"], of, result.attrs);
    return result;
  }

  json list(const json& item, const char* key, std::string_view of) {
    if (!item.contains(key)) return json::array();
    if (item[key].is_array() && item[key].size() <= kLongestList) return item[key];
    faults_.add("\"{}\" of {} is no list of {} items at most", key, of, kLongestList);
    return json::array();
  }

  Operand operand(const json& item, std::string_view of) {
    if (item.is_null()) return {};
    if (item.is_number() && std::isfinite(item.get<double>())) return {"", item.get<double>()};
    const bool fine = item.is_string() && !item.get_ref<const std::string&>().empty() &&
                      item.get_ref<const std::string&>().size() <= kLongestName;
    if (!fine) faults_.add("{} reads what is neither a name, a number nor null", of);
    return {fine ? item.get<std::string>() : "", {}};
  }

  void read_attrs(const json& attrs, std::string_view of, Attrs& to) {
    if (!attrs.is_object() || attrs.size() > 64) {
      faults_.add("\"attrs\" of {} is no object of 64 settings at most", of);
      return;
    }
    for (const auto& [name, value] : attrs.items()) {
      if (value.is_boolean()) {
        to.set(name, int64_t{value.get<bool>()});
      } else if (value.is_number_integer() && value >= INT64_MIN / 2 && value <= INT64_MAX / 2) {
        to.set(name, value.get<int64_t>());
      } else if (value.is_number_float() && std::isfinite(value.get<double>())) {
        to.set(name, value.get<double>());
      } else if (value.is_string() && value.get_ref<const std::string&>().size() <= kLongestName) {
        to.set(name, value.get<std::string>());
      } else if (const auto numbers = whole_numbers(value)) {
        to.set(name, *numbers);
      } else {
        faults_.add("setting '{}' of {} is neither a number, a text nor a list of whole numbers",
                    name.substr(0, 60), of);
      }
    }
  }

  static std::optional<std::vector<int64_t>> whole_numbers(const json& value) {
    if (!value.is_array() || value.size() > kLongestList) return std::nullopt;
    std::vector<int64_t> numbers;
    for (const json& one : value) {
      const bool fine = one.is_number_integer() && one >= INT64_MIN / 2 && one <= INT64_MAX / 2;
      if (!fine) return std::nullopt;
      numbers.push_back(one.get<int64_t>());
    }
    return numbers;
  }

  // Each thing has one name, and what is read is there before it.
  void check_names(const Net& net) {
    std::set<std::string_view> known, of_parameters;
    const auto define = [&](const std::string& name) {
      if (!known.insert(name).second) faults_.add("'{}' is there twice", name);
    };
    for (const NetInput& input : net.inputs) define(input.name);
    for (const NetParameter& parameter : net.parameters) {
      define(parameter.name);
      for (const std::string& other : parameter.also) {
        if (!of_parameters.insert(other).second || known.contains(other)) {
          faults_.add("'{}' is there twice", other);
        }
      }
      const size_t groups = std::max<size_t>(1, net.groups.size());
      if (parameter.group >= groups) {
        faults_.add("parameter '{}' is of group {}, of {}", parameter.name, parameter.group,
                    groups);
      }
    }
    for (const NetTensor& buffer : net.buffers) define(buffer.name);
    for (const NetTensor& constant : net.constants) define(constant.name);
    for (const NetNode& node : net.nodes) {
      for (const Operand& operand : node.in) {
        if (!operand.value.empty() && !known.contains(operand.value)) {
          faults_.add("'{}' reads '{}', which is not there before it", node.op, operand.value);
        }
      }
      for (const std::string& made : node.out) define(made);
    }
    if (!known.contains(net.loss)) faults_.add("the loss '{}' is not there", net.loss);
    for (const NetOutput& output : net.outputs) {
      if (!known.contains(output.value)) faults_.add("the output '{}' is not there", output.value);
    }
    if (net.inputs.empty()) faults_.add("it reads nothing");
  }

  Faults faults_;
  const std::string& path_;
};

}  // namespace

Shape shape_for(const Extents& extents, int64_t rows) {
  std::vector<int64_t> dims;
  for (const Extent& extent : extents) {
    int64_t size = extent.count;
    if (extent.of_rows) {
      user_check(!__builtin_mul_overflow(size, rows, &size),
                 "a tensor of {} times {} is beyond any memory", extent.count, rows);
    }
    dims.push_back(size);
  }
  return Shape(std::span<const int64_t>(dims));
}

Net read_net(const std::string& path) { return Reader(path).read(); }

}  // namespace thimble
