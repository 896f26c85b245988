/** Texts as people type them: what a CSV has to quote, and what looks like something it is not. */
export const KEYWORDS = [
  '여름 원피스',
  'running shoes',
  '노트북 15"',
  'red, blue & green',
  "O'Neill",
  '선물 🎁 추천',
  'null',
  '007',
  'TRUE',
  ' 앞뒤 공백 ',
  'C:\\temp\\new',
  'e\u0301te\u0301',
  'a;b\tc',
  '=1+1',
];

export const MEMOS = [
  '문 앞에 놓아 주세요',
  '첫째 줄\n둘째 줄',
  'line one\r\nline two\r\n',
  'He said "no", then left',
  '"',
  '""',
  ',',
  '배송 전 연락,\n"부재 시" 경비실',
  '👩‍👩‍👧 가족',
  'plain',
  'trailing backslash\\',
  '\n',
  '2026-01-01',
  '널\u00a0문자 없음',
];

export const ITEM_NAMES = [
  '린넨 셔츠',
  '운동화 270mm',
  'Wool coat, long',
  '27" 모니터',
  'USB-C 케이블 (2m)',
  '커피 원두 1kg',
  '캠핑 의자 "라이트"',
  'Notebook A5',
];

export const CATEGORIES = ['패션', '가전', '식품', '스포츠', 'Home & Living', '도서/문구', 'Kids, baby'];
export const COLORS = ['빨강', 'navy', '#00ff00', '검정/흰색', 'off-white'];
export const PAYMENTS = ['card', 'bank_transfer', '네이버페이', 'kakao_pay', 'point'];
export const CHANNELS = ['kakao', 'facebook', 'email', 'apple', 'link'];
export const SOURCES = ['ANDROID', 'IOS', 'WEB', 'SERVER'];
export const PLANS = ['free', 'basic', 'pro', '기업'];
export const ROUTES = ['검색', '지인 추천', '광고, 배너', 'instagram'];
export const LISTS = [
  '["a","b"]',
  '["신상품"]',
  '[]',
  '["x, y","say \\"hi\\""]',
  '["줄\\n바꿈"]',
  '[null,"a"]',
  '["1","2"]',
];
