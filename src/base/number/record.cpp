#include "base/number/record.h"

#include <algorithm>

#include "base/error.h"

namespace thimble {
namespace {

bool fits(const Shape& room, const RecordField& offered) {
  if (room == offered.shape) return true;
  const int rank = offered.shape.rank();
  if (!offered.variable || room.rank() != rank) return false;
  return std::ranges::equal(room.dims().subspan(1), offered.shape.dims().subspan(1));
}

}  // namespace

std::string to_string(std::span<const RecordField> fields) {
  std::string text;
  for (const RecordField& field : fields) {
    text += fmt::format("{}'{}' {}{}", text.empty() ? "" : ", ", field.name,
                        field.variable ? "up to " : "",
                        field.shape.rank() == 0 ? std::string(name_of(field.dtype))
                                                : to_string(TensorType{field.shape, field.dtype}));
    if (field.limit > 0) text += fmt::format(" below {}", field.limit);
  }
  return text.empty() ? "nothing" : text;
}

const RecordField* find_field(std::span<const RecordField> fields, std::string_view name) {
  const auto found = std::ranges::find(fields, name, &RecordField::name);
  return found == fields.end() ? nullptr : &*found;
}

std::optional<std::string> find_mismatch(std::span<const RecordField> wanted,
                                         std::span<const RecordField> offered) {
  for (const RecordField& want : wanted) {
    const RecordField* const offer = find_field(offered, want.name);
    if (offer == nullptr) return fmt::format("there is no '{}'", want.name);
    if (offer->dtype != want.dtype) {
      return fmt::format("'{}' is of another type", want.name);
    }
    if (!fits(want.shape, *offer)) return fmt::format("'{}' is of another shape", want.name);
    if (want.limit > 0 && (offer->limit == 0 || offer->limit > want.limit)) {
      return fmt::format("'{}' may be {} or more", want.name, want.limit);
    }
    if (want.strided && !offer->strided) {
      return fmt::format("'{}' cannot be spread over a batch whose rows are not its first axis",
                         want.name);
    }
  }
  return std::nullopt;
}

void check_match(std::string_view reader, std::span<const RecordField> wanted,
                 std::string_view source, std::span<const RecordField> offered) {
  const std::optional<std::string> mismatch = find_mismatch(wanted, offered);
  user_check(!mismatch,
             "{} reads {}, but the data set '{}' has {}: {}; choose another --data (`thimble list "
             "data`), or a model that fits it",
             reader, to_string(wanted), source, to_string(offered), mismatch.value_or(""));
}

int64_t entry_bytes(const RecordField& field) {
  const int rank = field.shape.rank();
  return size_of(field.dtype) * (rank == 0 ? 1 : field.shape.product(1, rank));
}

}  // namespace thimble
