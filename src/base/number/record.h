// Records and their named fields: what data sets offer, what models read, and what passes between.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/number/shape.h"

namespace thimble {

// One part of every record of a data set; or of what a model reads of one.
struct RecordField {
  std::string name;  // "pixels", "label", "tokens"
  DType dtype = DType::f32;
  Shape shape;                          // of one record, the largest there is; rank 0: a number
  int64_t limit = 0;                    // whole numbers: all are in [0, limit); 0: no matter
  std::optional<int64_t> ignored = {};  // or this one, a label that does not count
  double pad = 0;                       // stands where a batch has more room than records fill
  bool variable = false;                // records may be shorter along the first axis
  bool strided = false;  // entries of the first axis may be written apart (RecordPart::stride)
  bool image = false;    // [H,W,C]: may be cropped and mirrored while training
};

// "'pixels' u8[8,8,1], 'label' i32 below 10". For messages.
std::string to_string(std::span<const RecordField> fields);

// Null: there is none of that name.
const RecordField* find_field(std::span<const RecordField> fields, std::string_view name);

// Why records with the fields `offered` are not what a reader of `wanted` can be fed with; empty:
// they are. Names and types must be equal and numbers within the reader's limit. Shapes must be
// equal, but that a reader of variable records may have less room than the longest takes, or more.
std::optional<std::string> find_mismatch(std::span<const RecordField> wanted,
                                         std::span<const RecordField> offered);

// UserError with everything that either side says, unless they match.
void check_match(std::string_view reader, std::span<const RecordField> wanted,
                 std::string_view source, std::span<const RecordField> offered);

// Where one field of one record goes: entries of its first axis, each of them in one piece.
struct RecordPart {
  std::byte* data = nullptr;  // null: nobody reads this field
  int64_t entry = 0;          // bytes of an entry; of a field of rank 0, of the number
  int64_t stride = 0;         // bytes from one entry to the next
  int64_t entries = 0;        // as many as the record has

  bool whole() const { return stride == entry; }
  template <class T>
  std::span<T> at(int64_t i) const {
    return {reinterpret_cast<T*>(data + i * stride), static_cast<size_t>(entry) / sizeof(T)};
  }
  // REQUIRES: whole().
  template <class T>
  std::span<T> all() const {
    return {reinterpret_cast<T*>(data), static_cast<size_t>(entry * entries) / sizeof(T)};
  }
};

// Bytes of one entry of the field's first axis.
int64_t entry_bytes(const RecordField& field);

}  // namespace thimble
