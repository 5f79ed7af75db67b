#include "weights/safetensors_header.h"

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>

#include "base/error.h"

namespace thimble {
namespace {

using Json = nlohmann::json;

constexpr std::string_view kMetadata = "__metadata__";

struct DTypeName {
  std::string_view name;
  DType dtype;
};
constexpr std::array<DTypeName, 7> kDTypes = {{{"F32", DType::f32},
                                               {"F64", DType::f64},
                                               {"F16", DType::f16},
                                               {"BF16", DType::bf16},
                                               {"I32", DType::i32},
                                               {"I64", DType::i64},
                                               {"U8", DType::u8}}};

// The format's other types: a file may hold tensors of them that nobody asks for.
struct ForeignType {
  std::string_view name;
  int64_t bytes;  // of an element
};
constexpr std::array<ForeignType, 11> kForeign = {{{"BOOL", 1},
                                                   {"I8", 1},
                                                   {"F8_E4M3", 1},
                                                   {"F8_E5M2", 1},
                                                   {"F8_E8M0", 1},
                                                   {"I16", 2},
                                                   {"U16", 2},
                                                   {"U32", 4},
                                                   {"U64", 8},
                                                   {"C64", 8},
                                                   {"C128", 16}}};

std::string_view stored_name(DType dtype) {
  for (const DTypeName& known : kDTypes) {
    if (known.dtype == dtype) return known.name;
  }
  return {};
}

// Names in messages are cut: a hostile file may have one of megabytes.
std::string shown(std::string_view name) {
  std::string text;
  for (const char c : name.substr(0, 80)) text += (c >= ' ' && c < 0x7f) ? c : '?';
  return name.size() > 80 ? text + "..." : text;
}

template <class... Args>
[[noreturn]] void bad_file(const std::string& path, fmt::format_string<Args...> format,
                           Args&&... args) {
  user_error("'{}' is not a sound safetensors file: {}; get a fresh copy of it", path,
             fmt::format(format, std::forward<Args>(args)...));
}

// One tensor's fields as they are met, in any order.
struct Draft {
  std::optional<DType> dtype;
  std::string foreign;        // else
  int64_t element_bytes = 0;  // 0: no dtype met yet
  std::optional<std::vector<int64_t>> shape;
  std::optional<std::vector<int64_t>> offsets;
};

// Takes the parser's events one by one, so that nothing deeper, longer or other than the format
// allows is ever built. Its places:
//
//   start ─{─▶ top ─name:{─▶ tensor ─shape:[─▶ list ─]─▶ tensor
//               └─__metadata__:{─▶ metadata
class HeaderEvents : public nlohmann::json_sax<Json> {
 public:
  HeaderEvents(SafetensorsHeader& header, const std::string& path) : header_(header), path_(path) {}

  bool null() override { return misplaced("null"); }
  bool boolean(bool) override { return misplaced("true or false"); }
  bool number_integer(Json::number_integer_t value) override {
    bad_file(path_, "{} has the negative number {}", context(), value);
  }
  bool number_float(Json::number_float_t, const std::string& text) override {
    bad_file(path_, "{} has the number {}, which is no 64-bit whole number", context(),
             shown(text));
  }
  bool binary(Json::binary_t&) override { return misplaced("binary data"); }

  bool number_unsigned(Json::number_unsigned_t value) override {
    if (place_ != Place::list) return misplaced("a number");
    if (value > static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) {
      bad_file(path_, "{} has the number {}, which is beyond any file", context(), value);
    }
    const size_t limit = field_ == "shape" ? size_t{Shape::kMaxRank} : 2;
    if (list_.size() == limit) {
      bad_file(path_, "{} has more than {} numbers in its {}", context(), limit, field_);
    }
    list_.push_back(static_cast<int64_t>(value));
    return true;
  }

  bool string(std::string& value) override {
    if (place_ == Place::metadata) {
      if (!header_.metadata.emplace(field_, value).second) {
        bad_file(path_, "its metadata has '{}' twice", shown(field_));
      }
      return true;
    }
    if (place_ != Place::tensor || field_ != "dtype") return misplaced("a text");
    if (draft_.element_bytes != 0) twice();
    for (const DTypeName& known : kDTypes) {
      if (known.name != value) continue;
      draft_.dtype = known.dtype;
      draft_.element_bytes = size_of(known.dtype);
    }
    for (const ForeignType& type : kForeign) {
      if (type.name != value) continue;
      draft_.foreign = value;
      draft_.element_bytes = type.bytes;
    }
    if (draft_.element_bytes == 0) {
      user_error(
          "'{}' has {} with elements of type '{}', which thimble does not know; store it as F32, "
          "F64, F16, BF16, I32, I64 or U8",
          path_, context(), shown(value));
    }
    return true;
  }

  bool key(std::string& name) override {
    field_ = name;
    if (place_ == Place::tensor && name != "dtype" && name != "shape" && name != "data_offsets") {
      bad_file(path_, "{} has the unknown field '{}'", context(), shown(name));
    }
    return true;
  }

  bool start_object(size_t) override {
    if (place_ == Place::start) {
      place_ = Place::top;
      return true;
    }
    if (place_ != Place::top) return misplaced("an object");
    if (!names_.insert(field_).second) {
      bad_file(path_, "it names '{}' twice", shown(field_));
    }
    place_ = field_ == kMetadata ? Place::metadata : Place::tensor;
    name_ = field_;
    draft_ = Draft();
    return true;
  }

  bool end_object() override {
    if (place_ == Place::tensor) finish_tensor();
    place_ = place_ == Place::top ? Place::start : Place::top;
    return true;
  }

  bool start_array(size_t) override {
    if (place_ != Place::tensor || field_ == "dtype") return misplaced("a list");
    place_ = Place::list;
    list_.clear();
    return true;
  }

  bool end_array() override {
    auto& target = field_ == "shape" ? draft_.shape : draft_.offsets;
    if (target) twice();
    target = list_;
    place_ = Place::tensor;
    return true;
  }

  bool parse_error(size_t position, const std::string&, const Json::exception&) override {
    bad_file(path_, "its header is no well-formed JSON near byte {}", position);
  }

 private:
  enum class Place : uint8_t { start, top, metadata, tensor, list };

  std::string context() const {
    switch (place_) {
      case Place::metadata:
        return "its metadata";
      case Place::tensor:
      case Place::list:
        return fmt::format("the tensor '{}'", shown(name_));
      default:
        return "its header";
    }
  }
  bool misplaced(std::string_view what) {
    bad_file(path_, "{} has {} where none belongs", context(), what);
  }
  [[noreturn]] void twice() { bad_file(path_, "{} has two fields '{}'", context(), field_); }

  void finish_tensor() {
    if (draft_.element_bytes == 0 || !draft_.shape || !draft_.offsets ||
        draft_.offsets->size() != 2) {
      bad_file(path_, "{} lacks its dtype, its shape or its two data_offsets", context());
    }
    // Zeros are left out of the product: a part of the shape must not overflow either.
    int64_t bytes = draft_.element_bytes;
    bool empty = false;
    for (const int64_t extent : *draft_.shape) {
      empty = empty || extent == 0;
      if (extent != 0 && __builtin_mul_overflow(bytes, extent, &bytes)) {
        bad_file(path_, "{} has the impossible shape [{}]", context(),
                 fmt::join(*draft_.shape, ","));
      }
    }
    if (empty) bytes = 0;
    const int64_t begin = (*draft_.offsets)[0], end = (*draft_.offsets)[1];
    if (end < begin || end - begin != bytes) {
      bad_file(path_, "{} needs {} bytes but its data_offsets are {} and {}", context(), bytes,
               begin, end);
    }
    header_.rows.push_back({name_,
                            TensorType{Shape(std::span<const int64_t>(*draft_.shape)),
                                       draft_.dtype.value_or(DType::u8)},
                            begin, end, draft_.foreign});
  }

  SafetensorsHeader& header_;
  const std::string& path_;
  Place place_ = Place::start;
  std::set<std::string> names_;
  std::string name_, field_;
  Draft draft_;
  std::vector<int64_t> list_;
};

void check_coverage(const SafetensorsHeader& header, int64_t data_bytes, const std::string& path) {
  std::vector<const SafetensorsRow*> order;
  for (const SafetensorsRow& row : header.rows) order.push_back(&row);
  std::sort(order.begin(), order.end(), [](const SafetensorsRow* a, const SafetensorsRow* b) {
    return std::pair(a->begin, a->end) < std::pair(b->begin, b->end);
  });
  int64_t covered = 0;
  for (const SafetensorsRow* row : order) {
    if (row->begin != covered) {
      bad_file(path, "the tensor '{}' starts at byte {} of the data, {} byte {}", shown(row->name),
               row->begin, row->begin < covered ? "inside another that ends at" : "after a hole at",
               covered);
    }
    covered = row->end;
  }
  if (covered != data_bytes) {
    bad_file(path, "its tensors take {} bytes but {} bytes of data follow the header ({})", covered,
             data_bytes, covered > data_bytes ? "truncated" : "oversized");
  }
}

}  // namespace

std::string print_safetensors_header(const SafetensorsHeader& header) {
  nlohmann::ordered_json listed = nlohmann::ordered_json::object();
  if (!header.metadata.empty()) listed[std::string(kMetadata)] = header.metadata;
  for (const SafetensorsRow& row : header.rows) {
    internal_check(row.name != kMetadata && !listed.contains(row.name),
                   "safetensors: the tensor name '" + row.name + "' is taken");
    listed[row.name] = {{"dtype", stored_name(row.type.dtype)},
                        {"shape", row.type.shape.dims()},
                        {"data_offsets", {row.begin, row.end}}};
  }
  // Metadata may hold a user's bytes (a path, a recipe): what is not UTF-8 is replaced.
  std::string text = listed.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
  text.resize((text.size() + 7) / 8 * 8, ' ');
  return text;
}

SafetensorsHeader parse_safetensors_header(std::string_view text, int64_t data_bytes,
                                           const std::string& path) {
  if (!text.starts_with('{')) bad_file(path, "its header does not start with a brace");
  SafetensorsHeader header;
  HeaderEvents events(header, path);
  Json::sax_parse(text, &events);
  check_coverage(header, data_bytes, path);
  return header;
}

}  // namespace thimble
