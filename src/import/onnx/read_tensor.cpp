#include "import/onnx/read_tensor.h"

#include <array>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <optional>

#include "base/error.h"

namespace thimble {
namespace {

constexpr Bytes kLargestBeside = Bytes(int64_t{1} << 40);
constexpr int64_t kMostSettings = 1 << 16;  // numbers of a list that a graph is told by
constexpr int64_t kMostSmall = 1 << 24;     // elements of types that are read number by number

constexpr std::array<std::string_view, 24> kTypeNames = {
    "no type",  "float",  "uint8",   "int8",   "uint16", "int16",  "int32",     "int64",
    "string",   "bool",   "float16", "double", "uint32", "uint64", "complex64", "complex128",
    "bfloat16", "float8", "float8",  "float8", "float8", "uint4",  "int4",      "float4"};

template <class Number>
void append_fixed(const WireField& field, std::vector<double>& to) {
  if (field.kind != 2) {
    Number number{};
    std::memcpy(&number, &field.value, sizeof(Number));
    to.push_back(static_cast<double>(number));
    return;
  }
  for (size_t at = 0; at + sizeof(Number) <= field.bytes.size(); at += sizeof(Number)) {
    Number number{};
    std::memcpy(&number, field.bytes.data() + at, sizeof(Number));
    to.push_back(static_cast<double>(number));
  }
}

template <class Number>
void append_raw(std::span<const std::byte> raw, std::vector<double>& to) {
  append_fixed<Number>({.number = 9, .kind = 2, .bytes = raw}, to);
}

// Types that there is no DType for.
bool is_small(uint64_t code) {
  return code == 3 || code == 4 || code == 5 || code == 12 || code == 13;
}

void read_small(uint64_t code, OnnxTensor& tensor) {
  user_check(tensor.elements() <= kMostSmall, "'{}' has {} numbers of {}; {} are the most",
             tensor.name, tensor.elements(), onnx_type_name(code), kMostSmall);
  if (tensor.raw.empty()) return;
  if (code == 3) append_raw<int8_t>(tensor.raw, tensor.numbers);
  if (code == 4) append_raw<uint16_t>(tensor.raw, tensor.numbers);
  if (code == 5) append_raw<int16_t>(tensor.raw, tensor.numbers);
  if (code == 12) append_raw<uint32_t>(tensor.raw, tensor.numbers);
  if (code == 13) append_raw<uint64_t>(tensor.raw, tensor.numbers);
  tensor.raw = {};
}

// Half floats that stand in a list of whole numbers, by their bits.
template <class Half>
void from_bits(std::vector<double>& numbers) {
  for (double& number : numbers) {
    Half half;
    half.bits = static_cast<uint16_t>(static_cast<int64_t>(number));
    number = static_cast<double>(half);
  }
}

struct Elsewhere {
  std::string file;
  int64_t offset = 0, length = -1;
};

void read_place(std::span<const std::byte> entry, Elsewhere& place) {
  std::string_view key, value;
  WireField field;
  for (WireReader reader(entry); reader.next(field);) {
    if (field.number == 1) key = field.text();
    if (field.number == 2) value = field.text();
  }
  const auto number = [&](int64_t& to) {
    const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), to);
    user_check(error == std::errc() && end == value.data() + value.size() && to >= 0,
               "a tensor in another file lies at '{}'", value);
  };
  if (key == "location") place.file = std::string(value);
  if (key == "offset") number(place.offset);
  if (key == "length") number(place.length);
}

}  // namespace

OnnxType onnx_type(uint64_t code) {
  switch (code) {
    case 1:
      return {DType::f32, false, 4};
    case 2:
    case 9:
      return {DType::u8, true, 1};
    case 3:
      return {DType::i32, true, 1};
    case 4:
    case 5:
      return {DType::i32, true, 2};
    case 6:
      return {DType::i32, true, 4};
    case 12:
      return {DType::i64, true, 4};
    case 7:
    case 13:
      return {DType::i64, true, 8};
    case 10:
      return {DType::f16, false, 2};
    case 11:
      return {DType::f64, false, 8};
    case 16:
      return {DType::bf16, false, 2};
    default:
      return {};
  }
}

std::string onnx_type_name(uint64_t code) {
  return code < kTypeNames.size() ? std::string(kTypeNames[code]) : fmt::format("type {}", code);
}

std::span<const std::byte> FilesBeside::part(const std::string& name, int64_t offset,
                                             int64_t length, OnnxModel& model) {
  namespace fs = std::filesystem;
  const fs::path given(name);
  bool inside = !name.empty() && given.is_relative();
  for (const fs::path& part : given) inside = inside && part != "..";
  user_check(inside, "a tensor lies in '{}', which is not in the folder of the file", name);
  auto& file = files_[name];
  if (!file) {
    std::error_code none;
    const fs::path folder =
        fs::weakly_canonical(fs::absolute(fs::path(path_), none).parent_path(), none);
    const fs::path whole = fs::weakly_canonical(folder / given, none);
    const fs::path way = whole.lexically_relative(folder);
    user_check(!none && !way.empty() && *way.begin() != "..",
               "a tensor lies in '{}', which is not in the folder of the file", name);
    file = std::make_shared<const MappedFile>(whole.string(), "the tensors of an ONNX file",
                                              kLargestBeside);
    model.files.push_back(file);
  }
  const int64_t size = std::ssize(file->bytes());
  user_check(offset <= size && length <= size - offset,
             "a tensor lies at {} to {} of '{}', which has {} bytes", offset, offset + length, name,
             size);
  return file->bytes().subspan(static_cast<size_t>(offset), static_cast<size_t>(length));
}

std::vector<int64_t> wholes_in(const WireField& field) {
  if (field.kind == 0) return {field.whole()};
  std::vector<int64_t> numbers;
  for (WireReader reader(field.bytes); !reader.done();) {
    numbers.push_back(static_cast<int64_t>(reader.varint()));
  }
  return numbers;
}

void append_floats(const WireField& field, std::vector<double>& to) {
  append_fixed<float>(field, to);
}

OnnxTensor read_onnx_tensor(std::span<const std::byte> bytes, OnnxModel& model,
                            FilesBeside& beside) {
  OnnxTensor tensor;
  std::vector<int64_t> dims;
  uint64_t code = 0;
  std::optional<Elsewhere> elsewhere;
  Elsewhere place;
  WireField field;
  for (WireReader reader(bytes); reader.next(field);) {
    switch (field.number) {
      case 1:
        for (const int64_t extent : wholes_in(field)) dims.push_back(extent);
        user_check(dims.size() <= 64, "a tensor has more axes than anyone wants");
        break;
      case 2:
        code = field.value;
        break;
      case 4:
        append_fixed<float>(field, tensor.numbers);
        break;
      case 5:
      case 7:
      case 11:
        for (const int64_t number : wholes_in(field)) {
          tensor.numbers.push_back(static_cast<double>(number));
        }
        break;
      case 8:
        tensor.name = field.text();
        break;
      case 9:
        tensor.raw = field.bytes;
        break;
      case 10:
        append_fixed<double>(field, tensor.numbers);
        break;
      case 13:
        read_place(field.bytes, place);
        break;
      case 14:
        if (field.value == 1) elsewhere = Elsewhere();
        break;
    }
  }
  const OnnxType type = onnx_type(code);
  if (type.bytes == 0) {
    tensor.refused = fmt::format("'{}' is of ONNX's type {}", tensor.name, onnx_type_name(code));
    return tensor;
  }
  tensor.dtype = type.dtype;
  tensor.whole = type.whole;
  tensor.shape = Shape(std::span<const int64_t>(dims));
  const int64_t size = tensor.elements() * type.bytes;
  if (elsewhere) {
    user_check(place.length < 0 || place.length == size, "'{}' has {} bytes in '{}', not {}",
               tensor.name, place.length, place.file, size);
    tensor.raw = beside.part(place.file, place.offset, size, model);
    tensor.numbers.clear();
  }
  const bool whole = tensor.raw.empty() ? std::ssize(tensor.numbers) == tensor.elements()
                                        : std::ssize(tensor.raw) == size;
  user_check(whole, "'{}' has not as many numbers as its shape {}", tensor.name,
             to_string(tensor.shape));
  if (is_small(code)) read_small(code, tensor);
  if (code == 10 && tensor.raw.empty()) from_bits<Half>(tensor.numbers);
  if (code == 16 && tensor.raw.empty()) from_bits<BFloat16>(tensor.numbers);
  return tensor;
}

double OnnxTensor::at(int64_t i) const {
  if (raw.empty()) return numbers[static_cast<size_t>(i)];
  return with_any_type(dtype, [&]<class T>(TypeTag<T>) {
    T number{};
    std::memcpy(&number, raw.data() + i * static_cast<int64_t>(sizeof(T)), sizeof(T));
    return static_cast<double>(number);
  });
}

std::vector<int64_t> OnnxTensor::wholes() const {
  user_check(elements() <= kMostSettings, "'{}' is a list of {} numbers", name, elements());
  std::vector<int64_t> result;
  for (int64_t i = 0; i < elements(); ++i) {
    const double number = at(i);
    const bool sane = number >= -9.2e18 && number <= 9.2e18;
    result.push_back(sane ? static_cast<int64_t>(number) : number > 0 ? INT64_MAX : INT64_MIN);
  }
  return result;
}

}  // namespace thimble
